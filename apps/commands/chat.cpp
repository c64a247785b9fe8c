// candor chat: a conversation with line editing, history and commands.

#include <editline/readline.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/chat_commands.h"
#include "apps/commands/chat_file.h"
#include "apps/commands/commands.h"
#include "apps/commands/stream.h"
#include "apps/explain/tokens.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/idle_options.h"
#include "apps/options/image_files.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"
#include "candor/engine.h"

namespace candor::apps {
namespace {

struct ChatOptions {
  GenerationOptions generation;
  std::vector<std::string> positionals;
  std::optional<std::string> resume;
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

// What was said, for /explain and /answer: the same request with its seed gives the same again.
void keep(Request request, const StreamOutcome& outcome, ChatState& state) {
  request.sampling.seed = outcome.summary.usage.seed;
  LastAnswer& last = state.last.emplace();
  last.request = std::move(request);
  last.answers.push_back(outcome);
  last.answers.insert(last.answers.end(), outcome.others.begin(), outcome.others.end());
}

// The request once more, explained: its tokens are the same ones.
void explain(Engine& engine, const LastAnswer& last, int64_t number) {
  Request request = last.request;
  const size_t n = last.answers[last.taken].tokens.size();
  if (n == 0) return write_err("the last answer has no token\n");
  request.sampling.explain = true;
  request.sampling.logprobs = std::max(0, request.sampling.logprobs);
  request.sampling.max_tokens = static_cast<int64_t>(n);
  std::vector<TokenEvent> events;
  const auto collect = [&](const TokenEvent& event) {
    if (static_cast<size_t>(event.choice) == last.taken && event.explanation) events.push_back(event);
  };
  const auto done = engine.generate(request, collect);
  if (!done) return say_error(done.error().message);
  const std::span<const TokenEvent> all = events;
  write_out(tokens_text(engine, number > 0 ? all.subspan(static_cast<size_t>(number - 1), 1) : all,
                        {.sampling = request.sampling,
                         .seed = *request.sampling.seed,
                         .level = number > 0 ? Level::kFull : Level::kBrief,
                         .first = std::max<int64_t>(1, number)}));
}

// False when the conversation has to end.
bool answer(Engine& engine, ChatState& state, int& code) {
  Request request;
  request.prompt = ChatPrompt{state.messages};
  request.sampling = state.sampling;
  request.adapters = state.adapters;
  request.on_context_full = state.on_context_full;
  request.n = state.n_answers;
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
  write_out(rest_of_answers(engine, *outcome));
  if (!outcome->others.empty())
    write_err(Style(STDERR_FILENO).dim("the conversation goes on from answer 1; /answer 2 takes another") + "\n");
  for (const std::string& warning : outcome->summary.warnings) say_warning(warning);
  write_err(Style(STDERR_FILENO).dim(summary_line(*outcome, engine.info())) + "\n");
  state.messages.push_back({"assistant", outcome->text});
  keep(std::move(request), *outcome, state);
  code = outcome->was_interrupted ? kInterrupted : kDone;
  return true;
}

// file: keeps what was said, after each answer.
int converse(Engine& engine, ChatState& state, bool interactive, const std::optional<std::filesystem::path>& file) {
  int code = kDone;
  while (const auto line = read_line(interactive)) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line->starts_with("/")) {
      const CommandResult result = run_chat_command(*line, state);
      write_err(result.text);
      if (result.explain) explain(engine, *state.last, *result.explain);
      if (result.quit) break;
      if (!result.answer_again) continue;
    } else if (first_invalid_utf8(*line) != line->size()) {
      say_error(fmt::format("that line is not valid UTF-8 (offset {})", first_invalid_utf8(*line)));
      continue;
    } else {
      auto message = user_message(*line, std::exchange(state.images, {}));
      if (!message) {
        say_error(message.error().message);
        continue;
      }
      state.messages.push_back(std::move(*message));
    }
    const bool goes_on = answer(engine, state, code);
    if (file) {
      if (const auto kept = write_chat(*file, state.messages); !kept) say_warning(kept.error().message);
    }
    if (!goes_on) return code;
    if (code == kInterrupted && !interactive) return code;
  }
  return code == kInterrupted && interactive ? kDone : code;
}

// The conversation of --resume, if there is one.
Result<std::vector<Message>> resumed(const ChatOptions& options, std::optional<std::filesystem::path>& file) {
  if (!options.resume) return std::vector<Message>();
  CANDOR_ASSIGN(file, chat_file_of(*options.resume));
  CANDOR_ASSIGN(std::vector<Message> messages, read_chat(*file));
  if (!messages.empty() && options.generation.system)
    say_warning("--system has no effect: the conversation began before");
  return messages;
}

void tell_of(const std::vector<Message>& messages, const std::filesystem::path& file) {
  const auto n = std::ranges::count(messages, "user", &Message::role);
  write_err(n == 0 ? fmt::format("a new conversation, kept in {}\n", file.string())
                   : fmt::format("{} turns of {}; the last message:\n{}\n", n, file.string(), messages.back().content));
}

ChatState first_state(const GenerationOptions& options) {
  ChatState state;
  if (options.system) state.messages.push_back({"system", *options.system});
  state.sampling = sampling_params(options);
  state.adapters = all_adapters(options.adapters);
  state.n_answers = static_cast<int32_t>(options.n_answers.value_or(1));
  state.on_context_full = context_full_action(options);
  return state;
}

int chat(const ChatOptions& options, const CLI::App& command) {
  auto choice = choose_model(options.generation.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("chat takes no prompt (\"{}\"): type it once it runs", choice->texts[0])), kUserInput;
  std::optional<std::filesystem::path> file;
  const auto messages = resumed(options, file);
  if (!messages) return say_error(messages.error().message), kUserInput;
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
  ChatState state = first_state(options.generation);
  if (!messages->empty()) state.messages = *messages;
  Request like;
  like.sampling = state.sampling;
  note_idle_generation(command, like);
  const bool interactive = is_terminal(STDIN_FILENO);
  if (interactive) {
    using_history();
    write_err(fmt::format("{}, {} tokens of context. /help lists the commands, Ctrl-D ends.\n",
                          choice->model.filename().string(), info.n_ctx));
  }
  if (file) tell_of(state.messages, *file);
  return converse(*engine, state, interactive, file);
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("chat", "a conversation, with /set, /explain, /save, /regenerate");
  const auto options = std::make_shared<ChatOptions>();
  command->add_option("model", options->positionals, "[MODEL]");
  add_answer_options(*command, options->generation);
  add_generation_options(*command, options->generation);
  add_ranks(*command, options->generation.n_ranks);
  add_disk_cache(*command, options->generation.disk_cache);
  command
      ->add_option("--resume", options->resume, "go on with this conversation, and keep what is said (a name, a file)")
      ->type_name("NAME");
  command->callback([options, command, &action] { action = [options, command] { return chat(*options, *command); }; });
}

}  // namespace candor::apps
