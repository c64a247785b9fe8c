// candor rerank: documents by how well they answer a query.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/reading_texts.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/info.h"
#include "serve/core/reading_fields.h"

namespace candor::apps {
namespace {

struct RerankOptions {
  ReadingOptions reading;
  std::optional<std::string> query;
  std::optional<int64_t> n_top;
  bool is_raw = false;
};

struct Ranked {
  size_t index = 0;
  double score = 0;
};

int run(const RerankOptions& options) {
  int code = kDone;
  auto reader = open_reader(options.reading, code);
  if (!reader) return code;
  const ReadingInfo& info = reader->engine->info().reading;
  if (!info.ranks_pairs()) {
    say_error(info.labels.empty() ? "this model has no head that scores pairs of texts: a reranker has one "
                                    "(bge-reranker, ms-marco-MiniLM and others)"
                                  : "this model's head classifies, and scores no pairs: candor classify");
    return kUserInput;
  }
  std::vector<std::string> positional = std::move(reader->texts);
  std::optional<std::string> query = options.query;
  if (!query && !positional.empty()) {
    query = std::move(positional.front());
    positional.erase(positional.begin());
  }
  if (!query) return say_error("no query given: candor rerank MODEL \"query\" \"document\" ..."), kUserInput;
  const auto documents = texts_of(options.reading, std::move(positional));
  if (!documents) return say_error(documents.error().message), kUserInput;
  std::vector<Request> requests(documents->size());
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = PairPrompt{*query, (*documents)[i]};
    requests[i].pooling = Pooling::kLabels;
  }
  std::vector<Ranked> ranked(requests.size());
  code = read_all(*reader->engine, options.reading, requests, [&](size_t index, const ReadText& read) {
    const double logit = serve::rank_logit(read.numbers);
    ranked[index] = {index, options.is_raw ? logit : serve::sigmoid(logit)};
  });
  if (code != kDone) return code;
  std::ranges::stable_sort(ranked, [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  ranked.resize(std::min(ranked.size(), static_cast<size_t>(options.n_top.value_or(INT64_MAX))));
  for (const Ranked& one : ranked) {
    const std::string& text = (*documents)[one.index];
    write_out(options.reading.json
                  ? nlohmann::ordered_json({{"index", one.index}, {"score", one.score}, {"text", text}}).dump() + "\n"
                  : fmt::format("{:.6f}  {}\n", one.score, printable(text)));
  }
  return kDone;
}

}  // namespace

void add_rerank(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("rerank", "documents by how well they answer a query");
  const auto options = std::make_shared<RerankOptions>();
  add_reading_options(*command, options->reading, "[MODEL] QUERY DOCUMENT...");
  command->add_option("-q,--query", options->query, "the query; all arguments behind the model are then documents")
      ->type_name("TEXT");
  add_int(*command, "--top", options->n_top, 1, int64_t{1} << 31, "only the best so many");
  command->add_flag("--raw-scores", options->is_raw, "what the head gives, instead of its sigmoid");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
