#pragma once
// The commands of `candor chat`: /help, /set, /save, /regenerate, /system, /clear, /quit. Pure but for /save.

#include <string>
#include <string_view>
#include <vector>

#include "candor/request.h"

namespace candor::apps {

struct ChatState {
  std::vector<Message> messages;
  SamplingParams sampling;
  OnContextFull on_context_full = OnContextFull::kStop;
};

struct CommandResult {
  std::string text;           // to show, with its newline
  bool answer_again = false;  // the last message is the user's: let the model answer it
  bool quit = false;
};

// line: begins with '/'.
CommandResult run_chat_command(std::string_view line, ChatState& state);

}  // namespace candor::apps
