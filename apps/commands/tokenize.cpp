// candor tokenize: text to ids and back, piece by piece.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/idle_options.h"
#include "apps/options/model_choice.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "formats/model_file.h"
#include "model/hub/hub_folder.h"
#include "text/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::apps {
namespace {

struct TokenizeOptions {
  std::optional<std::string> model;
  std::vector<std::string> positionals;
  bool json = false, no_special = false, parse_special = false, from_stdin = false, decode = false;
};

Result<std::string> input_text(const TokenizeOptions& options, const std::vector<std::string>& texts) {
  if (options.from_stdin && !texts.empty())
    return fail(ErrorKind::kInvalidInput, "text given both as an argument and by --stdin: give one");
  if (options.from_stdin) return read_stdin(true);
  if (texts.size() == 1) return texts.front();
  if (texts.size() > 1)
    return fail(ErrorKind::kInvalidInput, fmt::format("{} texts given: put the text in quotes", texts.size()));
  if (is_terminal(STDIN_FILENO))
    return fail(ErrorKind::kInvalidInput, "no text given: candor tokenize MODEL \"text\", or --stdin");
  return read_stdin(true);
}

Result<std::vector<TokenId>> parse_ids(std::string_view text, int32_t n_vocab) {
  std::vector<TokenId> ids;
  const std::string_view separators = " ,\n\t\r[]";
  for (size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    TokenId id = -1;
    const auto [stop, status] = std::from_chars(text.data() + at, text.data() + end, id);
    if (status != std::errc() || stop != text.data() + end || id < 0 || id >= n_vocab)
      return fail(ErrorKind::kInvalidInput, fmt::format("\"{}\" is no token id: ids are whole numbers from 0 to {}",
                                                        text.substr(at, end - at), n_vocab - 1));
    ids.push_back(id);
    at = end;
  }
  return ids;
}

int print_pieces(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  const Style style(STDOUT_FILENO);
  std::string out;
  for (const TokenId id : ids) {
    const bool control = tokenizer.kind(id) == text::TokenKind::kControl;
    const std::string piece = printable(tokenizer.piece(id));
    out += fmt::format("{:>7}  {}\n", id, control ? style.yellow(piece) : piece);
  }
  out += style.dim(fmt::format("{} tokens, {}\n", ids.size(), tokenizer.description()));
  write_out(out);
  return kDone;
}

int decode(const TokenizeOptions& options, const text::Tokenizer& tokenizer, std::string_view input) {
  auto ids = parse_ids(input, tokenizer.n_vocab());
  if (!ids) return say_error(ids.error().message), kUserInput;
  const std::string bytes = text::detokenize(tokenizer, *ids, true);
  if (options.json)
    write_out(nlohmann::json(bytes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  else
    write_out(bytes);
  return kDone;
}

int run(const TokenizeOptions& options, const CLI::App& command) {
  auto choice = choose_model(options.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  auto input = input_text(options, choice->texts);
  if (!input) return say_error(input.error().message), kUserInput;
  auto file = model::open_model(choice->model);
  if (!file) return say_error(file.error().message), kUserInput;
  auto tokenizer = text::Tokenizer::from_model_file(**file);
  if (const auto whole = (*file)->check_intact(); !whole) return say_error(whole.error().message), kUserInput;
  if (!tokenizer) return say_error(tokenizer.error().message), kUserInput;
  if (options.decode) note_idle(command, {"--no-special", "--parse-special"}, "--decode reads ids");
  if (options.decode) return decode(options, **tokenizer, *input);
  const auto ids =
      (*tokenizer)->encode(*input, {.add_special = !options.no_special, .parse_special = options.parse_special});
  if (!ids) return say_error(ids.error().message), kUserInput;
  if (!options.json) return print_pieces(**tokenizer, *ids);
  write_out(nlohmann::json(*ids).dump() + "\n");
  return kDone;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("tokenize", "text to ids and back, piece by piece");
  const auto options = std::make_shared<TokenizeOptions>();
  command->add_option("text", options->positionals, "[MODEL] TEXT");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  command->add_flag("--stdin", options->from_stdin, "read the text (any bytes) from standard input");
  command->add_flag("--no-special", options->no_special, "without the beginning and end tokens");
  command->add_flag("--parse-special", options->parse_special, "control tokens written in the text become their ids");
  command->add_flag("--decode", options->decode, "the input is ids; print their text");
  command->add_flag("--json", options->json, "a JSON array of ids (or a JSON string)");
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
