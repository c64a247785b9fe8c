#pragma once
// Encodes reasoning text for `encrypted_content` of the Responses API, which clients send back unread, and decodes it.
// It is base64 behind a mark and hides nothing: the reply has the same text in the clear.

#include <optional>
#include <string>
#include <string_view>

namespace candor::serve::responses {

std::string sealed(std::string_view text);
// Nothing where sealed() did not make the text.
std::optional<std::string> unsealed(std::string_view sealed_text);

}  // namespace candor::serve::responses
