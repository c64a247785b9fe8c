// candor classify: the labels of texts, or of their tokens.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/reading_texts.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/info.h"
#include "serve/core/reading_fields.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

struct ClassifyOptions {
  ReadingOptions reading;
  bool is_raw = false;
};

std::vector<double> shares_of(std::span<const float> logits, bool is_raw) {
  if (is_raw) return {logits.begin(), logits.end()};
  if (logits.size() == 1) return {serve::sigmoid(static_cast<double>(logits.front()))};
  return serve::softmax(logits);
}

size_t best_of(const std::vector<double>& shares) {
  return static_cast<size_t>(std::ranges::max_element(shares) - shares.begin());
}

std::string text_line(const ClassifyOptions& options, const std::vector<std::string>& labels, const std::string& text,
                      const ReadText& read) {
  const std::vector<double> shares = shares_of(read.numbers, options.is_raw);
  const size_t best = best_of(shares);
  if (!options.reading.json) return fmt::format("{}  {:.4f}  {}\n", labels[best], shares[best], printable(text));
  Json scores = Json::object();
  for (size_t i = 0; i < shares.size(); ++i) scores[labels[i]] = shares[i];
  return Json{{"text", text}, {"label", labels[best]}, {"scores", std::move(scores)}}.dump() + "\n";
}

// Each token with its label, as a line or as an object.
std::string token_lines(const Engine& engine, const ClassifyOptions& options, const std::vector<std::string>& labels,
                        const std::string& text, const ReadText& read) {
  const auto tokens = engine.tokenize(TextPrompt{.text = text});
  std::string lines;
  Json list = Json::array();
  for (size_t t = 0; tokens && (t + 1) * labels.size() <= read.numbers.size() && t < tokens->size(); ++t) {
    const std::vector<double> shares =
        shares_of(std::span(read.numbers).subspan(t * labels.size(), labels.size()), options.is_raw);
    const size_t best = best_of(shares);
    const auto piece = engine.detokenize(std::span(&(*tokens)[t], 1));
    const std::string word = piece ? *piece : std::string();
    list.push_back(Json{{"token", (*tokens)[t]}, {"word", word}, {"label", labels[best]}, {"score", shares[best]}});
    lines += fmt::format("{:<16} {}  {:.4f}\n", printable(word), labels[best], shares[best]);
  }
  return options.reading.json ? Json{{"text", text}, {"tokens", std::move(list)}}.dump() + "\n" : lines;
}

int run(const ClassifyOptions& options) {
  int code = kDone;
  auto reader = open_reader(options.reading, code);
  if (!reader) return code;
  const ReadingInfo& info = reader->engine->info().reading;
  if (info.labels.empty()) {
    say_error("this model has no head that classifies: its files hold no labels");
    return kUserInput;
  }
  const auto texts = texts_of(options.reading, std::move(reader->texts));
  if (!texts) return say_error(texts.error().message), kUserInput;
  std::vector<Request> requests(texts->size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = TextPrompt{.text = (*texts)[i]};
    requests[i].pooling = info.labels_tokens ? Pooling::kNone : Pooling::kLabels;
    requests[i].rows = info.labels_tokens ? PromptRows::kLabels : PromptRows::kNone;
  }
  return read_all(*reader->engine, options.reading, requests, [&](size_t index, const ReadText& read) {
    const std::string& text = (*texts)[index];
    write_out(info.labels_tokens ? token_lines(*reader->engine, options, info.labels, text, read)
                                 : text_line(options, info.labels, text, read));
  });
}

}  // namespace

void add_classify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("classify", "the labels of texts, or of their tokens");
  const auto options = std::make_shared<ClassifyOptions>();
  add_reading_options(*command, options->reading, "[MODEL] TEXT...");
  command->add_flag("--raw-scores", options->is_raw, "what the head gives, instead of shares");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
