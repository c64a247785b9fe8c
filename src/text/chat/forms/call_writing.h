#pragma once
// How a model writes a tool call in its form (tool-call format) when a grammar forces it to call: the texts around the
// name and the arguments, and the notation of the arguments. The form's own reader accepts whatever is written so.

#include <cstdint>
#include <span>
#include <string_view>

namespace candor::text {

struct CallWriting {
  enum class Arguments : uint8_t {
    kNone,    // no way to write calls is known
    kJson,    // one JSON object
    kText,    // each by itself, strings as they stand
    kGemma,   // {key:value}, strings between <|"|>
    kPython,  // key=value
  };
  Arguments arguments = Arguments::kNone;
  std::string_view begin = {};  // of all calls
  std::string_view before_name = {};
  std::string_view before_arguments = {};
  std::string_view behind_call = {};
  std::string_view between = {};  // calls
  std::string_view end = {};      // of all calls
  bool may_repeat = true;         // several calls in one answer
  // kText
  std::string_view before_key = {};
  std::string_view before_value = {};
  std::string_view value_tail = {};  // between the value and its end mark
  std::string_view value_end = {};   // a mark: no text holds it
  std::string_view behind_value = {};
  std::span<const std::string_view> tokens = {};  // marks that a vocabulary may have as one control token
};

}  // namespace candor::text
