// candor chat: a conversation with line editing, history and commands.

#include <editline/readline.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "apps/commands/chat_commands.h"
#include "apps/commands/commands.h"
#include "apps/commands/stream.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

struct ChatOptions {
  GenerationOptions generation;
  std::vector<std::string> positionals;
};

// A line of the person's, without its newline; empty at the end of input.
std::optional<std::string> read_line(bool interactive) {
  if (!interactive) {
    std::string line;
    return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
  }
  char* raw = nullptr;
  {
    const EndsOnInterrupt at_once;
    raw = ::readline("> ");
  }
  if (raw == nullptr) return std::nullopt;
  std::string line(raw);
  std::free(raw);
  if (!line.empty()) ::add_history(line.c_str());
  return line;
}

// False when the conversation has to end.
bool answer(Engine& engine, ChatState& state, int& code) {
  Request request;
  request.prompt = ChatPrompt{state.messages};
  request.sampling = state.sampling;
  request.on_context_full = state.on_context_full;
  clear_interrupt();
  auto outcome = stream_request(engine, request, write_out);
  if (!outcome) {
    say_error(outcome.error().message);
    if (outcome.error().kind == ErrorKind::kContextLength) say_warning("/clear begins a new conversation");
    state.messages.pop_back();
    code = exit_code(outcome.error());
    return outcome.error().kind != ErrorKind::kInternal;
  }
  if (outcome->reader_gone) return false;
  if (!outcome->text.ends_with('\n')) write_out("\n");
  for (const std::string& warning : outcome->summary.warnings) say_warning(warning);
  write_err(Style(STDERR_FILENO).dim(summary_line(*outcome, engine.info())) + "\n");
  state.messages.push_back({"assistant", outcome->text});
  code = outcome->was_interrupted ? kInterrupted : kDone;
  return true;
}

int converse(Engine& engine, ChatState& state, bool interactive) {
  int code = kDone;
  while (const auto line = read_line(interactive)) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line->starts_with("/")) {
      const CommandResult result = run_chat_command(*line, state);
      write_err(result.text);
      if (result.quit) break;
      if (!result.answer_again) continue;
    } else if (first_invalid_utf8(*line) != line->size()) {
      say_error(fmt::format("that line is not valid UTF-8 (offset {})", first_invalid_utf8(*line)));
      continue;
    } else {
      state.messages.push_back({"user", *line});
    }
    if (!answer(engine, state, code)) return code;
    if (code == kInterrupted && !interactive) return code;
  }
  return code == kInterrupted && interactive ? kDone : code;
}

int chat(const ChatOptions& options) {
  auto choice = choose_model(options.generation.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("chat takes no prompt (\"{}\"): type it once it runs", choice->texts[0])), kUserInput;
  int code = kDone;
  const auto engine = open_engine(engine_options(options.generation, choice->model), code);
  if (!engine) return code;
  const ModelInfo& info = engine->info();
  if (!info.has_chat_template) {
    say_error(fmt::format("{} has no chat template{}{}: 'candor run --raw' continues text with it",
                          choice->model.string(),
                          info.chat_template_error.empty() ? "" : " that works: ", info.chat_template_error));
    return kUserInput;
  }
  ChatState state;
  if (options.generation.system) state.messages.push_back({"system", *options.generation.system});
  state.sampling = sampling_params(options.generation);
  state.on_context_full = context_full_action(options.generation);
  const bool interactive = is_terminal(STDIN_FILENO);
  if (interactive) {
    using_history();
    write_err(fmt::format("{}, {} tokens of context. /help lists the commands, Ctrl-D ends.\n",
                          choice->model.filename().string(), info.n_ctx));
  }
  return converse(*engine, state, interactive);
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("chat", "a conversation, with /set, /save, /regenerate");
  const auto options = std::make_shared<ChatOptions>();
  command->add_option("model", options->positionals, "[MODEL]");
  add_generation_options(*command, options->generation);
  command->callback([options, &action] { action = [options] { return chat(*options); }; });
}

}  // namespace candor::apps
