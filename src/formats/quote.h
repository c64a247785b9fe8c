#pragma once
// Text from outside, made fit for one line of an error message.

#include <string>
#include <string_view>

namespace candor::formats {

// In single quotes, control and invalid bytes as \xHH, cut to about 100 bytes with "..." when longer.
std::string in_quotes(std::string_view text);

}  // namespace candor::formats
