#include "apps/commands/chat_commands.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "apps/commands/chat_file.h"
#include "apps/commands/chat_settings.h"
#include "apps/options/image_files.h"

namespace candor::apps {
namespace {

constexpr const char* kHelp =
    "  /set                     what is set now\n"
    "  /set temperature 0.7     and every other option of sampling; /set NAME says which there are\n"
    "  /explain                 how each token of the last answer came about, one line each\n"
    "  /explain 3               all that the sampler did for its third token\n"
    "  /answer 2                goes on from another of several answers (/set answers 3)\n"
    "  /image FILE              an image that goes with the next message; again for more\n"
    "  /system TEXT             what the model is told first (begins anew)\n"
    "  /regenerate              another answer to the last message\n"
    "  /save FILE               the conversation as text; NAME.json: for --resume\n"
    "  /clear                   a new conversation\n"
    "  /quit                    or Ctrl-D\n";

std::string save(std::string_view name, const std::vector<Message>& messages) {
  if (name.empty()) return "/save FILE\n";
  const std::filesystem::path path{std::string(name)};
  std::error_code status;
  if (std::filesystem::exists(path, status))
    return fmt::format("{} exists already: choose another name\n", path.string());
  if (path.extension() == ".json") {
    const auto written = write_chat(path, messages);
    return written ? fmt::format("saved to {}: candor chat --resume {}\n", path.string(), path.string())
                   : written.error().message + "\n";
  }
  const std::filesystem::path partial = path.string() + ".partial";
  std::ofstream file(partial);
  for (const Message& message : messages) file << message.role << ": " << message.content << "\n\n";
  file.close();
  if (file) std::filesystem::rename(partial, path, status);
  if (!file || status) {
    std::filesystem::remove(partial, status);
    return fmt::format("{} could not be written\n", path.string());
  }
  return fmt::format("saved to {}\n", path.string());
}

// Which token, or 0.
CommandResult explain(std::string_view rest, const ChatState& state) {
  if (!state.last) return {"nothing to explain yet\n"};
  const size_t n = state.last->answers[state.last->taken].tokens.size();
  int64_t token = 0;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), token);
  const bool is_number = status == std::errc() && end == rest.data() + rest.size();
  if (!rest.empty() && (!is_number || token < 1 || static_cast<size_t>(token) > n))
    return {fmt::format("\"{}\" is no token of the last answer, which has 1 to {}\n", rest, n)};
  return {"", false, false, rest.empty() ? 0 : token};
}

CommandResult take_answer(std::string_view rest, ChatState& state) {
  const bool has_answer = state.last && !state.messages.empty() && state.messages.back().role == "assistant";
  if (!has_answer) return {"there is no answer yet\n"};
  const size_t n = state.last->answers.size();
  size_t number = 0;
  const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (status != std::errc() || end != rest.data() + rest.size() || number < 1 || number > n)
    return {fmt::format("\"{}\" is no answer: there are 1 to {}\n", rest, n)};
  state.last->taken = number - 1;
  state.messages.back().content = state.last->answers[number - 1].text;
  return {fmt::format("the conversation goes on from answer {}\n", number)};
}

CommandResult regenerate(ChatState& state) {
  if (state.messages.empty() || state.messages.back().role != "assistant") return {"nothing to answer again\n"};
  state.messages.pop_back();
  if (state.sampling.seed) ++*state.sampling.seed;
  return {"", true, false};
}

std::string attach(std::string_view path, ChatState& state) {
  if (path.empty()) return "/image FILE\n";
  const auto file = read_image_file(std::string(path));
  if (!file) return file.error().message + "\n";
  state.images.emplace_back(path);
  return fmt::format("{} images go with the next message\n", state.images.size());
}

void begin_anew(ChatState& state, std::string_view system) {
  std::string kept(system);
  if (kept.empty() && !state.messages.empty() && state.messages.front().role == "system")
    kept = state.messages.front().content;
  state.messages.clear();
  state.images.clear();
  state.last.reset();
  if (!kept.empty()) state.messages.push_back({"system", kept});
}

}  // namespace

CommandResult run_chat_command(std::string_view line, ChatState& state) {
  const size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (name == "/help") return {kHelp};
  if (name == "/set") return {run_set(rest, state)};
  if (name == "/explain") return explain(rest, state);
  if (name == "/answer") return take_answer(rest, state);
  if (name == "/save") return {save(rest, state.messages)};
  if (name == "/image") return {attach(rest, state)};
  if (name == "/regenerate") return regenerate(state);
  if (name == "/quit" || name == "/exit" || name == "/bye") return {"", false, true};
  if (name == "/clear" || name == "/system") {
    if (name == "/system" && rest.empty()) return {"/system TEXT\n"};
    begin_anew(state, name == "/system" ? rest : std::string_view());
    return {"a new conversation\n"};
  }
  return {fmt::format("unknown command {}; /help lists them\n", name)};
}

}  // namespace candor::apps
