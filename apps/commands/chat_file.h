#pragma once
// Conversations that go on later: `candor chat --resume NAME`, `/save NAME.json`. JSON: {"version": 1, "messages":
// [{"role", "content", "images": [base64]}]}, whole or not there. A later version is refused, and left alone.

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "candor/request.h"

namespace candor::apps {

inline constexpr int kChatVersion = 1;

// A name is a file in the user's own folder (XDG_DATA_HOME or ~/.local/share, candor/chats); what has a slash or ends
// in .json is a file by itself. Refused: no folder is known, or the name is none.
Result<std::filesystem::path> chat_file_of(const std::string& name);
// Empty where the file is not there.
Result<std::vector<Message>> read_chat(const std::filesystem::path& path);
// Makes the user's folder (0700) where it is not there.
Result<void> write_chat(const std::filesystem::path& path, const std::vector<Message>& messages);

}  // namespace candor::apps
