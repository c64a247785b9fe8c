#include "apps/commands/chat_commands.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

namespace candor::apps {
namespace {

constexpr const char* kHelp =
    "  /set                     what is set now\n"
    "  /set temperature 0.7     also top_k, top_p, min_p, seed, max_tokens, preset\n"
    "  /system TEXT             what the model is told first (begins anew)\n"
    "  /regenerate              another answer to the last message\n"
    "  /save FILE               the conversation as text\n"
    "  /clear                   a new conversation\n"
    "  /quit                    or Ctrl-D\n";

std::string describe(const SamplingParams& p) {
  return fmt::format("temperature {}, top_k {}, top_p {}, min_p {}, seed {}, max_tokens {}\n", p.temperature, p.top_k,
                     p.top_p, p.min_p, p.seed ? std::to_string(*p.seed) : "new each time",
                     p.max_tokens ? std::to_string(*p.max_tokens) : "until the end");
}

// Empty, or what is wrong.
std::string set_number(std::string_view text, double min, double max, double& target) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < min || value > max)
    return fmt::format("\"{}\" is not a number from {} to {}\n", text, min, max);
  target = value;
  return "";
}

std::string set_int(std::string_view text, int64_t min, int64_t max, int64_t& target) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < min || value > max)
    return fmt::format("\"{}\" is not a whole number from {} to {}\n", text, min, max);
  target = value;
  return "";
}

std::string set_value(std::string_view name, std::string_view value, SamplingParams& p) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (name == "temperature") return set_number(value, 0, 100, p.temperature);
  if (name == "top_p") return set_number(value, 0, 1, p.top_p);
  if (name == "min_p") return set_number(value, 0, 1, p.min_p);
  if (name == "top_k") return set_int(value, 0, kMax, p.top_k);
  int64_t number = 0;
  if (name == "seed" || name == "max_tokens") {
    const std::string wrong =
        set_int(value, name == "seed" ? 0 : 1, name == "seed" ? std::numeric_limits<int64_t>::max() : kMax, number);
    if (!wrong.empty()) return wrong;
    if (name == "seed")
      p.seed = static_cast<uint64_t>(number);
    else
      p.max_tokens = number;
    return "";
  }
  if (name == "preset") {
    const auto applied = apply_preset(value, p);
    return applied ? "" : applied.error().message + "\n";
  }
  return fmt::format("nothing is called \"{}\": temperature, top_k, top_p, min_p, seed, max_tokens, preset\n", name);
}

std::string run_set(std::string_view arguments, SamplingParams& sampling) {
  const size_t space = arguments.find_first_of(" =");
  if (arguments.empty()) return describe(sampling);
  if (space == std::string_view::npos) return "/set NAME VALUE\n";
  const std::string wrong = set_value(arguments.substr(0, space), arguments.substr(space + 1), sampling);
  return wrong.empty() ? describe(sampling) : wrong;
}

std::string save(std::string_view name, const std::vector<Message>& messages) {
  if (name.empty()) return "/save FILE\n";
  const std::filesystem::path path{std::string(name)};
  std::error_code status;
  if (std::filesystem::exists(path, status))
    return fmt::format("{} exists already: choose another name\n", path.string());
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

CommandResult regenerate(ChatState& state) {
  if (state.messages.empty() || state.messages.back().role != "assistant") return {"nothing to answer again\n"};
  state.messages.pop_back();
  if (state.sampling.seed) ++*state.sampling.seed;
  return {"", true, false};
}

void begin_anew(ChatState& state, std::string_view system) {
  std::string kept(system);
  if (kept.empty() && !state.messages.empty() && state.messages.front().role == "system")
    kept = state.messages.front().content;
  state.messages.clear();
  if (!kept.empty()) state.messages.push_back({"system", kept});
}

}  // namespace

CommandResult run_chat_command(std::string_view line, ChatState& state) {
  const size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  std::string_view rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  if (name == "/help") return {kHelp};
  if (name == "/set") return {run_set(rest, state.sampling)};
  if (name == "/save") return {save(rest, state.messages)};
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
