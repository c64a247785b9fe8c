#pragma once
// The options that `run`, `chat` and others share: which model, how the engine runs it, how each token is chosen.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/options/disk_cache_options.h"
#include "apps/options/sampling_options.h"
#include "base/error.h"
#include "candor/engine.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct GenerationOptions {
  std::optional<std::string> model;
  std::optional<int64_t> n_ctx, n_threads, n_ranks, max_tokens, seed, gpu_layers, cpu_experts;
  SamplingOptions sampling;
  std::string preset = "chat";
  std::string quantize;
  bool fast_weights = false;
  std::optional<int64_t> kept_states;
  DiskCacheOptions disk_cache;
  std::string backend = "auto";
  std::string kv_type = "auto";
  std::string on_context_full = "stop";
  std::vector<std::string> adapters;
  std::vector<std::string> stop;
  std::vector<int64_t> stop_ids;
  std::string stop_scope = "both";
  std::optional<std::string> system;
  std::string speculate = "auto";
  std::optional<std::string> draft;
  std::optional<std::string> mmproj;
  std::optional<int64_t> logprobs, n_answers;
  bool raw = false;
  bool ignore_eos = false;
  bool no_kv_cache = false;
};

void add_generation_options(CLI::App& command, GenerationOptions& options);
// --raw: the text goes in as it is.
void add_raw(CLI::App& command, GenerationOptions& options);
// How many answers, and what of their tokens' probabilities is shown.
void add_answer_options(CLI::App& command, GenerationOptions& options);
// Parts of the first: the preset and how each token is chosen, and others.
void add_choice_options(CLI::App& command, GenerationOptions& options);
void add_speculation_options(CLI::App& command, GenerationOptions& options);
void add_mmproj(CLI::App& command, std::optional<std::string>& mmproj);
void add_fast_weights(CLI::App& command, bool& fast_weights);
// --device, and --backend as it was called before.
void add_device(CLI::App& command, std::string& device);
// --gpu-layers and --cpu-experts.
void add_gpu_parts(CLI::App& command, GenerationOptions& options);
void add_kv_type(CLI::App& command, std::string& type);
void add_kept_states(CLI::App& command, std::optional<int64_t>& kept_states);
// otherwise: what holds where the option is left out.
void add_ranks(CLI::App& command, std::optional<int64_t>& n_ranks, const std::string& otherwise = "1");

// For the operator: "2 ranks, ", or nothing.
std::string ranks_text(const EngineOptions& engine);
// The other ranks run this program, or are those that mpirun started.
void apply_ranks(std::optional<int64_t> n_ranks, EngineOptions& engine);
void apply_speculation(const GenerationOptions& options, EngineOptions& engine);
EngineOptions engine_options(const GenerationOptions& options, const std::filesystem::path& model);
SamplingParams sampling_params(const GenerationOptions& options);
// The text as the model's chat template has it, unless there is none or --raw was given; --system without effect is
// said.
Prompt make_prompt(const GenerationOptions& options, const ModelInfo& info, std::string text);
OnContextFull context_full_action(const GenerationOptions& options);

using EngineOpener = std::function<Result<std::unique_ptr<Engine>>(const EngineOptions&, const LoadProgress&)>;
// Opens the engine with a progress bar on stderr; says the error and returns nullptr where that fails, with the exit
// code in `code`.
std::unique_ptr<Engine> open_engine(const EngineOptions& options, int& code, const EngineOpener& open = Engine::open);

}  // namespace candor::apps
