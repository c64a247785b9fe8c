// candor batch: a file of requests in, a file of answers out.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/commands/commands.h"
#include "apps/commands/serve_options.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/progress_line.h"
#include "apps/terminal/terminal.h"
#include "candor/engine.h"
#include "obs/log.h"
#include "serve/batch/batch.h"
#include "serve/core/reply.h"
#include "serve/service.h"

namespace candor::apps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostAtOnce = 256;
constexpr int64_t kMostSeed = int64_t{1} << 53;

struct BatchCommand {
  GenerationOptions generation;
  std::string input;
  std::string output;
  std::optional<std::string> model_id;
  std::optional<int64_t> n_at_once;
  bool in_order = false;
  bool retries_errors = false;
};

// Requests at once: as many as the K/V cache holds at a quarter of a context each, at most 64. More than that wait for
// memory in turn, and a step of 64 rows reads the weights about as seldom as one of more.
void choose_concurrency(const BatchCommand& command, EngineOptions& engine) {
  constexpr int32_t kMost = 64;
  engine.max_running = static_cast<int32_t>(command.n_at_once.value_or(kMost));
  engine.max_rows = std::max(engine.max_rows, engine.max_running);
  const auto plan = Engine::plan(engine);
  if (!plan || command.n_at_once || plan->kv_block_tokens == 0) return;
  const int64_t held = int64_t{plan->kv_blocks} * plan->kv_block_tokens;
  const int64_t each = std::max<int64_t>(plan->kv_block_tokens, plan->n_ctx / 4);
  engine.max_running = static_cast<int32_t>(std::clamp<int64_t>(held / each, 1, kMost));
}

// One line, written anew, on a terminal; otherwise one now and then.
class BatchProgress {
 public:
  void show(const serve::BatchCounts& counts) {
    const auto now = Clock::now();
    const auto pause = is_terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(30);
    if (now - last_ < pause) return;
    last_ = now;
    const std::string line = text(counts, now);
    write_err(is_terminal_ ? "\r\x1b[K" + fitted(line, terminal_columns(2) - 1) : line + "\n");
    is_shown_ = is_terminal_;
  }
  // What has come of it.
  void finish(const serve::BatchCounts& counts) {
    if (is_shown_) write_err("\r\x1b[K");
    write_err(summary(counts, seconds(Clock::now())) + "\n");
  }

 private:
  double seconds(Clock::time_point now) const {
    return std::max(1e-3, std::chrono::duration<double>(now - began_).count());
  }
  std::string text(const serve::BatchCounts& counts, Clock::time_point now) const {
    const size_t n_done = counts.n_before + counts.n_done;
    const double each = seconds(now) / static_cast<double>(std::max<size_t>(1, counts.n_done));
    std::string line = fmt::format("{} of {} requests, {} tok/s", format_count(static_cast<int64_t>(n_done)),
                                   format_count(static_cast<int64_t>(counts.n_lines)), rate(counts, seconds(now)));
    if (counts.n_failed > 0) line += fmt::format(", {} with errors", counts.n_failed);
    if (counts.n_done > 0) line += ", " + time_left(each * static_cast<double>(counts.n_lines - n_done)) + " left";
    return line;
  }
  static std::string rate(const serve::BatchCounts& counts, double seconds) {
    return format_count(static_cast<int64_t>(static_cast<double>(counts.n_answer_tokens) / seconds));
  }
  static std::string summary(const serve::BatchCounts& counts, double seconds) {
    std::string line =
        fmt::format("{} requests answered in {:.1f} s", format_count(static_cast<int64_t>(counts.n_done)), seconds);
    if (counts.n_before > 0)
      line += fmt::format(" ({} were there before)", format_count(static_cast<int64_t>(counts.n_before)));
    if (counts.n_failed > 0) line += fmt::format(", {} of them with an error", counts.n_failed);
    return line + fmt::format(" | {} prompt tokens, {} answer tokens, {} tok/s",
                              format_count(static_cast<int64_t>(counts.n_prompt_tokens)),
                              format_count(static_cast<int64_t>(counts.n_answer_tokens)), rate(counts, seconds));
  }

  const bool is_terminal_ = is_terminal(2);
  const Clock::time_point began_ = Clock::now();
  Clock::time_point last_ = began_;
  bool is_shown_ = false;
};

serve::ServiceOptions service_options(const Engine& engine, const std::string& model, int32_t n_at_once) {
  serve::ServiceOptions options;
  options.limits.model = model;
  options.limits.take_from(engine.info());
  options.n_places = static_cast<int32_t>(n_at_once * options.limits.max_choices);
  options.has_page = false;
  return options;
}

int finish(const serve::Batch& batch, const Result<void>& result, BatchProgress& progress) {
  progress.finish(batch.counts());
  if (!result) return say_error(result.error().message), exit_code(result.error());
  if (batch.is_complete()) return kDone;
  say_warning("interrupted: the same command goes on with what is missing");
  return kInterrupted;
}

int run_batch(const BatchCommand& command) {
  const auto choice = choose_model(command.generation.model, {});
  if (!choice) return say_error(choice.error().message), kUserInput;
  EngineOptions engine_options = apps::engine_options(command.generation, choice->model);
  choose_concurrency(command, engine_options);
  int code = kDone;
  const auto engine = open_engine(engine_options, code);
  if (!engine) return code;
  const int32_t n_at_once = engine_options.max_running;
  auto batch = serve::Batch::open({.input = command.input,
                                   .output = command.output,
                                   .n_at_once = n_at_once + n_at_once / 4 + 1,  // some wait, so that no slot does
                                   .in_order = command.in_order,
                                   .retries_errors = command.retries_errors,
                                   .seed = static_cast<uint64_t>(command.generation.seed.value_or(0)),
                                   .model = serve::fingerprint_of_all(*engine)});
  if (!batch) return say_error("batch: " + batch.error().message), exit_code(batch.error());
  const auto sink = obs::make_stderr_sink();
  const obs::Log log(*sink, obs::LogLevel::kWarning);
  serve::Service service(
      *engine, service_options(*engine, command.model_id.value_or(choice->model.stem().string()), n_at_once), log);
  write_err(fmt::format("candor: {} requests, of which {} are answered already; {} at once\n",
                        format_count(static_cast<int64_t>(batch->counts().n_lines)),
                        format_count(static_cast<int64_t>(batch->counts().n_before)), n_at_once));
  BatchProgress progress;
  const auto result = batch->run(service, [&](const serve::BatchCounts& counts) {
    progress.show(counts);
    return !interrupted();
  });
  return finish(*batch, result, progress);
}

}  // namespace

void add_batch(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("batch", "answer a file of requests; goes on where it stopped");
  const auto options = std::make_shared<BatchCommand>();
  GenerationOptions& generation = options->generation;
  command->add_option("input", options->input, "IN.jsonl")->required();
  command->add_option("output", options->output, "OUT.jsonl")->required();
  command->add_option("-m,--model", generation.model, "GGUF file; left out: the shipped model")->type_name("MODEL");
  command->add_option("--model-id", options->model_id, "the name that requests ask for (the file's)")
      ->type_name("NAME");
  command->add_flag("--ordered", options->in_order, "write answers in the input's order, instead of as they end");
  command->add_flag("--retry-errors", options->retries_errors, "ask again what OUT.jsonl answers with an error");
  add_int(*command, "--concurrency", options->n_at_once, 1, kMostAtOnce,
          "requests computed at once (what the K/V cache holds, at most 64)");
  add_int(*command, "--seed", generation.seed, 0, kMostSeed, "what the seeds of requests without one follow from (0)");
  add_machine_options(*command, generation);
  add_disk_cache(*command, generation.disk_cache);
  add_compute_options(*command, generation);
  command->callback([options, &action] { action = [options] { return run_batch(*options); }; });
}

}  // namespace candor::apps
