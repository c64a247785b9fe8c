// candor estimate: the paper arithmetic of a model on a machine.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands/commands.h"
#include "apps/estimate/figures.h"
#include "apps/estimate/machine.h"
#include "apps/estimate/options.h"
#include "apps/estimate/page.h"
#include "apps/estimate/ranks.h"
#include "apps/estimate/subject.h"
#include "apps/estimate/subject_image.h"
#include "apps/options/arguments.h"
#include "apps/options/idle_options.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"

namespace candor::apps {
namespace {

constexpr int64_t kMostMeasured = 1 << 20;  // tokens

Result<void> check_measurable(const EstimateOptions& options, const Subject& subject, const Machine& machine) {
  if (subject.file.empty())
    return fail(ErrorKind::kInvalidInput, "--measure runs a model: give its file instead of --parameters or --like");
  if (!machine.is_this)
    return fail(ErrorKind::kInvalidInput,
                "--measure runs here: leave out --hardware, --flops and --bandwidth, so that the estimate is of this "
                "machine too");
  const double most = std::min<double>(kMostMeasured, subject.spec.max_positions);
  if (options.prompt_tokens() + options.new_tokens() > most)
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("--measure: --prompt {:.0f} and --new {:.0f} are more than the {:.0f} tokens that the model was "
                    "made for",
                    options.prompt_tokens(), options.new_tokens(), most));
  return {};
}

// A prompt that nobody asked for fits the context.
void choose_prompt(EstimateOptions& options, const Subject& subject) {
  const double room = subject.spec.max_positions - options.new_tokens();
  if (options.n_prompt || subject.file.empty() || room >= options.prompt_tokens()) return;
  options.n_prompt = static_cast<int64_t>(std::max(1.0, room - static_cast<double>(options.n_image_rows)));
}

Result<void> run_estimate(EstimateOptions options) {
  CANDOR_ASSIGN(const Subject subject, choose_subject(options));
  std::optional<SubjectImage> image;
  if (options.image) {
    CANDOR_ASSIGN(image, choose_image(options, subject));
    options.n_image_rows = static_cast<int64_t>(image->cost.n_rows);
  }
  const SubjectImage* shown = image ? &*image : nullptr;
  choose_prompt(options, subject);
  CANDOR_ASSIGN(const Machine machine, choose_machine(options, subject));
  nlohmann::ordered_json figures = estimate_figures(subject, shown, machine, options);
  CANDOR_TRY(add_rank_figures(options, subject, figures));
  if (options.measures) {
    CANDOR_TRY(check_measurable(options, subject, machine));
    CANDOR_ASSIGN(figures["measured"], measured_figures(subject, shown, options));
  }
  write_out(options.json ? figures.dump(2) + "\n" : estimate_page(figures, subject) + ranks_page(figures));
  return {};
}

int run(const EstimateOptions& options, const CLI::App& command) {
  const bool is_given = options.flops && options.bandwidth;
  if (is_given) note_idle(command, {"--hardware"}, "--flops and --bandwidth say all that is computed with");
  if (is_given || options.hardware != "this") note_idle(command, {"--threads"}, "they are of this machine");
  if (is_given) note_idle(command, {"--device"}, "--flops and --bandwidth say all that is computed with");
  if (!options.image) note_idle(command, {"--mmproj"}, "it reads what --image names");
  if (!options.n_ranks) note_idle(command, {"--link", "--latency-us"}, "it belongs to --ranks");
  const auto done = run_estimate(options);
  return done ? kDone : (say_error(done.error().message), exit_code(done.error()));
}

void add_model_options(CLI::App& command, EstimateOptions& options) {
  command.add_option("model", options.positionals, "[MODEL]");
  command.add_option("-m,--model", options.model, "the model's file")->type_name("FILE");
  command.add_option("--like", options.like, "a published model instead: llama-2-7b, qwen3-30b-a3b, ...")
      ->type_name("NAME");
  add_number(command, "--parameters", options.parameters, 1, 1e15, "a model on paper instead");
  add_number(command, "--bits", options.bits, 1, 64, "of each weight, of both of these (16)");
  add_int(command, "--layers", options.layers, 1, 100000, "of the model on paper (as in one of its size)");
  add_int(command, "--heads", options.heads, 1, 100000, "of its attention");
  add_int(command, "--kv-heads", options.kv_heads, 1, 100000, "that share K/V");
  add_int(command, "--head-dim", options.head_dim, 1, 100000, "width of each");
}

void add_machine_options(CLI::App& command, EstimateOptions& options) {
  command
      .add_option("--hardware", options.hardware,
                  "this, a100, h100, h200, l4, l40s, rtx4090, rtx5090, m1-ultra, inferentia2, tpu-v5e (this)")
      ->type_name("NAME");
  add_choice(command, "--device", options.device, {"cpu", "cuda"},
             "cuda: a GPU by the kernels of this program, integers on tensor cores and other numbers beside them");
  add_number(command, "--flops", options.flops, 1, 1e21, "operations a second, instead");
  add_number(command, "--bandwidth", options.bandwidth, 1, 1e18, "bytes a second, instead");
  add_number(command, "--memory-gb", options.memory_gb, 0.001, 1e9, "of a device, instead");
  add_number(command, "--efficiency", options.efficiency, 0.001, 1, "share of its limits that is reached (1)");
  add_number(command, "--overhead-ms", options.overhead_ms, 0, 1e6, "of each step beside (0)");
  add_int(command, "-t,--threads", options.n_threads, 1, 1024, "of this machine (see candor doctor)");
  add_number(command, "--price-per-hour", options.price, 0, 1e9, "of a device");
  add_int(command, "--ranks", options.n_ranks, 1, 64, "devices or processes that share the model (1)");
  command.add_option("--link", options.link, "between them: shm, 10gbe, 25gbe, 100gbe (shm)")->type_name("NAME");
  add_number(command, "--latency-us", options.latency_us, 0, 1e6, "of an exchange, instead of the link's");
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("estimate", "the paper arithmetic: FLOPs, bytes, TTFT, ITL, price");
  const auto options = std::make_shared<EstimateOptions>();
  add_model_options(*command, *options);
  add_machine_options(*command, *options);
  add_int(*command, "--prompt", options->n_prompt, 1, int64_t{1} << 32, "tokens of the prompt's text (512)");
  command->add_option("--image", options->image, "an image beside it: its size in pixels, as 640x480, or a file")
      ->type_name("SIZE|FILE");
  command
      ->add_option("--mmproj", options->mmproj, "the part that reads images, for a GGUF file (mmproj*.gguf beside it)")
      ->type_name("FILE");
  add_int(*command, "--new", options->n_new, 1, int64_t{1} << 32, "tokens decoded (128)");
  add_int(*command, "--batch", options->n_batch, 1, 1 << 20, "sequences together (1)");
  command->add_flag("--measure", options->measures, "run the model here, and show its figures beside");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
