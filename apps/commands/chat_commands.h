#pragma once
// The commands of `candor chat`: /help, /set, /explain, /answer, /save, /regenerate, /system, /clear, /quit. Pure but
// for /save; what needs the engine is told in the result.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "candor/event.h"
#include "candor/request.h"

namespace candor::apps {

// What was asked last, with the seed that was in effect, and what came.
struct LastAnswer {
  Request request{};
  std::vector<CompletedChoice> answers{};
  size_t taken = 0;  // which of them the conversation goes on from
};

struct ChatState {
  std::vector<Message> messages{};
  SamplingParams sampling{};
  std::vector<RequestAdapter> adapters{};
  int32_t n_answers = 1;
  OnContextFull on_context_full = OnContextFull::kStop;
  std::vector<std::string> images{};  // files that go with the next message
  std::optional<LastAnswer> last{};
};

struct CommandResult {
  std::string text{};         // to show, with its newline
  bool answer_again = false;  // the last message is the user's: let the model answer it
  bool quit = false;
  std::optional<int64_t> explain{};  // this token of the last answer, counted from 1; 0: all of them in brief
};

inline constexpr int32_t kMostChatAnswers = 16;

// line: begins with '/'.
CommandResult run_chat_command(std::string_view line, ChatState& state);

}  // namespace candor::apps
