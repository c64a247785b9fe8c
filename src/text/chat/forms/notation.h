#pragma once
// How a form (tool-call format) writes values: the kinds of string it has, whether keys may be unquoted. Strict JSON is
// one notation; Python's literals and calls are another.

#include <span>
#include <string_view>

namespace candor::text {

struct StringMarks {
  std::string_view open;
  std::string_view close;
  bool has_escapes = true;  // a backslash takes the byte behind it with it
};

struct Notation {
  std::span<const StringMarks> strings;  // longer openings first
  bool has_bare_keys = false;            // {city: ...}
  bool is_python = false;                // True, None, tuples, name(key=value), commas before a closing bracket
};

extern const Notation kStrictJson;
extern const Notation kPythonLiteral;

}  // namespace candor::text
