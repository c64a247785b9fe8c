#pragma once
// Reasoning as `encrypted_content` carries it: a copy that clients hand back without looking into it. It hides nothing;
// the same text stands beside it.

#include <optional>
#include <string>
#include <string_view>

namespace candor::serve::responses {

std::string sealed(std::string_view text);
// Nothing where it is no text that was sealed here.
std::optional<std::string> unsealed(std::string_view sealed_text);

}  // namespace candor::serve::responses
