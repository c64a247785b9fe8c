#pragma once
// Texts as a Lark grammar writes them.

#include <span>
#include <string>
#include <string_view>

namespace candor::text {

struct ControlToken;

// "text"
std::string lark_string(std::string_view text);
// What matches the text, for use between slashes.
std::string lark_regex(std::string_view text);
// Strings and control tokens, one behind the other; the empty text is "".
std::string lark_atoms(std::string_view text, std::span<const ControlToken> controls);

}  // namespace candor::text
