#pragma once
// Base64 (RFC 4648, section 4) of bytes in text files.

#include <optional>
#include <string>
#include <string_view>

namespace candor::formats {

std::string to_base64(std::string_view bytes);
// Nothing where the text is none; padding is wanted.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace candor::formats
