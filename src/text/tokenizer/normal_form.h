#pragma once
// Unicode's normal forms (Unicode Standard Annex #15) by the tables of Unicode 9, which tokenizers are trained with:
// characters whose decomposition or combining class came later stay as they are, and part the text. Time is linear in
// the text, times the logarithm of its longest run of combining marks. Any thread.

#include <cstdint>
#include <string>
#include <string_view>

namespace candor::text {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// REQUIRES: valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace candor::text
