#pragma once
// Images named on the command line, as a user's message holds them.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "candor/request.h"

namespace candor::apps {

// --image FILE, any number.
void add_images(CLI::App& command, std::vector<std::string>& files);

// The bytes of a file. Refused: missing, unreadable, no file, larger than an image may be.
Result<std::string> read_image_file(const std::string& path);

// A message of the user: the images' bytes, then the text. Without images it is the text alone.
Message with_images(std::string text, std::vector<std::string> images);
// The same of files.
Result<Message> user_message(std::string text, const std::vector<std::string>& files);
// Files in front of the last message of a prompt, the user's. Refused: a prompt without messages.
Result<void> put_images(const std::vector<std::string>& files, Prompt& prompt);

}  // namespace candor::apps
