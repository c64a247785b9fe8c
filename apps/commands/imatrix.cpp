// candor imatrix: what comes into a model's matrices while it reads a text, for candor quantize --imatrix.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/bare_model.h"
#include "apps/bench/text_windows.h"
#include "apps/commands/commands.h"
#include "apps/commands/model_writing.h"
#include "apps/options/arguments.h"
#include "apps/options/prompt_source.h"
#include "apps/options/window_options.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "backend/wrap/input_watch.h"
#include "engine/open/mpi_ranks.h"
#include "model/score.h"
#include "quantize/importance.h"

namespace candor::apps {
namespace {

struct ImatrixOptions {
  std::optional<std::string> model;
  PromptSource source;
  std::string target;
  std::optional<int64_t> n_threads;
  WindowChoice window;
  bool force = false;
};

// Matrices of a tensor that no row reached have sums and a count of 0.
std::vector<quantize::ColumnSums> sums_of(const backend::WatchedInputs& inputs, const formats::ModelFile& file) {
  std::map<std::string, quantize::ColumnSums> tensors;
  for (const auto& [key, sums] : inputs.sums()) {
    const TensorView* tensor = file.find(key.first);
    if (tensor == nullptr) continue;
    const size_t n_matrices = quantize::n_matrices_of(*tensor);
    quantize::ColumnSums& all = tensors[key.first];
    all.tensor = key.first;
    all.n_in = sums.squares.size();
    all.squares.resize(n_matrices * all.n_in);
    all.counts.resize(n_matrices);
    const auto expert = static_cast<size_t>(key.second);
    std::ranges::transform(sums.squares, all.squares.begin() + static_cast<ptrdiff_t>(expert * all.n_in),
                           [](double square) { return static_cast<float>(square); });
    all.counts[expert] = static_cast<float>(sums.n_rows);
  }
  std::vector<quantize::ColumnSums> list;
  for (auto& [name, sums] : tensors) list.push_back(std::move(sums));
  return list;
}

void say_result(const ImatrixOptions& options, const std::vector<quantize::ColumnSums>& sums, size_t n_tokens,
                double perplexity) {
  size_t n_unused = 0;
  std::string first;
  for (const quantize::ColumnSums& one : sums) {
    const auto n = static_cast<size_t>(std::ranges::count(one.counts, 0.0f));
    if (n > 0 && first.empty()) first = one.tensor;
    n_unused += n;
  }
  write_err(fmt::format("{}: {} tensors over {} tokens, perplexity {:.4f}\n", printable(options.target), sums.size(),
                        n_tokens, perplexity));
  if (n_unused == 0) return;
  write_err(
      fmt::format("{} matrices of experts were never used, the first in {}: quantize refuses such a file; read "
                  "more text\n",
                  n_unused, first));
}

Result<void> gather(const ImatrixOptions& options, const std::string& path, const std::string& text) {
  std::vector<std::string> sources = {path};
  if (options.source.file) sources.push_back(*options.source.file);
  CANDOR_TRY(check_target(options.target, sources, options.force));
  EngineOptions engine;
  engine.model_path = path;
  engine.backend = "cpu";
  engine.n_threads = static_cast<int32_t>(options.n_threads.value_or(0));
  engine.max_running = 1;
  engine.n_ctx = options.window.n_tokens.value_or(0);
  backend::InputWatch* watch = nullptr;
  CANDOR_ASSIGN(BareModel bare, load_bare_model(engine, kUsualWindow, [&](std::unique_ptr<backend::Backend> inner) {
                  auto made = std::make_unique<backend::InputWatch>(std::move(inner));
                  watch = made.get();
                  return made;
                }));
  const int32_t window = options.window.tokens_of(bare.model->spec().max_positions);
  CANDOR_ASSIGN(const TextWindows windows,
                windows_of(*bare.file, text,
                           {static_cast<size_t>(window), options.window.split_at, options.window.parse_special}));
  const KvType kv_type = model::usual_kv(bare.model->spec(), bare.backend->info().default_kv);
  CANDOR_ASSIGN(const auto scorer,
                model::Scorer::make(*bare.model, *bare.backend, {.max_tokens = window, .kv_type = kv_type}));
  ProgressBar bar("reading");
  std::vector<double> logprobs;
  size_t n_tokens = 0;
  for (size_t i = 0; i < windows.tokens.size(); ++i) {
    if (interrupted()) return fail(ErrorKind::kCancelled, "interrupted; nothing was written");
    CANDOR_ASSIGN(const std::vector<double> one, scorer->logprobs(windows.tokens[i]));
    logprobs.insert(logprobs.end(), one.begin(), one.end());
    n_tokens += windows.tokens[i].size();
    bar.update(i + 1, windows.tokens.size());
  }
  bar.finish();
  const std::vector<quantize::ColumnSums> sums = sums_of(watch->inputs(), *bare.file);
  CANDOR_TRY(quantize::write_importance(options.target, sums,
                                        {options.source.file.value_or("text"),
                                         static_cast<uint32_t>(windows.tokens.size()), static_cast<uint32_t>(window)}));
  say_result(options, sums, n_tokens, model::perplexity(logprobs));
  return {};
}

int run(const ImatrixOptions& options) {
  if (engine::joined_ranks()) return say_error("imatrix runs as one process, without mpirun"), kUserInput;
  if (const auto good = check(options.window); !good) return say_error(good.error().message), kUserInput;
  const auto asked = read_model_and_prompt(options.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;
  const auto done = gather(options, asked->model, asked->text);
  return done ? kDone : (say_error(done.error().message), exit_code(done.error()));
}

}  // namespace

void add_imatrix(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ImatrixOptions>();
  CLI::App* command = app.add_subcommand("imatrix", "what comes into each matrix while a text is read, for quantize");
  command->add_option("text", options->source.positionals, "[MODEL] TEXT");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  command->add_option("-f,--file", options->source.file, "the text (- = standard input)")->type_name("FILE");
  command->add_option("-o,--output", options->target, "the importance matrix (GGUF)")->type_name("FILE")->required();
  command->add_flag("--force", options->force, "replace the result if it exists");
  add_int(*command, "-t,--threads", options->n_threads, 1, 1024, "threads (see candor doctor)");
  add_window_options(*command, options->window);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
