#pragma once
// Finds where a bracketed value ends in a text that still grows, by its strings and brackets: a bracket inside a string
// does not count. Looks at each byte once; memory is one byte a level, at most kMaxCallDepth of them. It does not check
// that the value is well formed; read_value() does.

#include <cstdint>
#include <string>
#include <string_view>

#include "text/chat/forms/notation.h"

namespace candor::text {

class ValueScanner {
 public:
  enum class State : uint8_t { kMore, kWhole, kBroken };

  // The value begins at text[begin]; a text that was scanned before may only have grown.
  explicit ValueScanner(size_t begin) : at_(begin) {}
  State scan(std::string_view text, const Notation& notation);
  // kWhole: behind the value. kBroken: at the byte that cannot belong to it.
  size_t at() const { return at_; }

 private:
  enum class Step : uint8_t { kGoOn, kMore, kBroken };

  Step pass_string(std::string_view text);
  Step pass_byte(std::string_view text, const Notation& notation);
  Step pass_bracket(char byte, const Notation& notation);

  size_t at_;
  std::string closers_;
  const StringMarks* string_ = nullptr;  // the one that is open
};

}  // namespace candor::text
