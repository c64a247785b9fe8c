#include "apps/options/generation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/kv_type.h"
#include "candor/presets.h"
#include "engine/open/device_choice.h"
#include "engine/open/mpi_ranks.h"

namespace candor::apps {
namespace {

constexpr int64_t kMostSideBySide = 16;  // answers; more of them take turns

std::string preset_help() {
  std::string text = "temperature and top-p by a name:";
  for (const SamplingPreset& p : kSamplingPresets) text += fmt::format(" {} {} {},", p.name, p.temperature, p.top_p);
  text.pop_back();
  return text;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const SamplingPreset& preset : kSamplingPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace

void add_speculation_options(CLI::App& command, GenerationOptions& o) {
  add_choice(command, "--speculate", o.speculate, {"auto", "off", "ngram", "draft", "draft-only"},
             "several tokens a step, same answer; draft: n-grams too");
  command.add_option("--draft", o.draft, "a smaller model, or a head; mtp: the model's own; eagle: EAGLE-3")
      ->type_name("FILE|mtp|eagle:FOLDER");
  add_mmproj(command, o.mmproj);
}

void add_mmproj(CLI::App& command, std::optional<std::string>& mmproj) {
  command.add_option("--mmproj", mmproj, "what reads images for a GGUF file (mmproj*.gguf beside it)")
      ->type_name("FILE");
}

void add_raw(CLI::App& command, GenerationOptions& o) {
  command.add_flag("--raw", o.raw, "continue the text as it is, without the chat template");
}

void add_answer_options(CLI::App& command, GenerationOptions& o) {
  add_int(command, "--answers", o.n_answers, 1, kMaxChoices, "N answers to one prompt, which is read once (1)");
  add_int(command, "--logprobs", o.logprobs, 0, kMaxLogprobs,
          "show each token's logprob, and the N likeliest beside it");
}

void add_fast_weights(CLI::App& command, bool& fast_weights) {
  command.add_flag("--fast-weights", fast_weights, "Q4_K rounded to bytes: prompts read faster, other answers");
}

void add_kv_type(CLI::App& command, std::string& type) {
  std::vector<std::string> choices = {"auto"};
  choices.insert(choices.end(), std::begin(kKvTypeNames), std::end(kKvTypeNames));
  add_choice(command, "--kv-type", type, choices, "numbers in the K/V cache; auto: bf16 for most models");
}

void add_kept_states(CLI::App& command, std::optional<int64_t>& kept_states) {
  constexpr int64_t kMost = 1 << 20;
  add_int(command, "--kept-states", kept_states, 0, kMost,
          "recurrent states kept for prefixes that come again (256 MB of them, 4 to 64)");
}

void add_ranks(CLI::App& command, std::optional<int64_t>& n_ranks, const std::string& otherwise) {
  add_int(command, "--ranks", n_ranks, 1, 64,
          "processes that share the model and the threads; same answer (" + otherwise + ")");
}

std::string ranks_text(const EngineOptions& engine) {
  return engine.n_ranks > 1 ? fmt::format("{} ranks, ", engine.n_ranks) : "";
}

void apply_ranks(std::optional<int64_t> n_ranks, EngineOptions& options) {
  const auto joined = engine::joined_ranks();
  options.n_ranks = joined ? joined->size : static_cast<int32_t>(n_ranks.value_or(1));
  options.rank_program = "/proc/self/exe";
  options.uses_mpi = joined.has_value();
}

void apply_speculation(const GenerationOptions& o, EngineOptions& options) {
  constexpr std::string_view kEagle = "eagle:";
  const bool is_own = o.draft == "mtp";
  const bool is_eagle = o.draft && o.draft->starts_with(kEagle);
  if (o.draft && !is_own) options.draft_path = o.draft->substr(is_eagle ? kEagle.size() : 0);
  if (o.mmproj) options.mmproj_path = *o.mmproj;
  if (o.speculate == "ngram") options.speculation = Speculation::kNgram;
  if (o.speculate == "auto" && !o.draft) options.speculation = Speculation::kAuto;
  options.ngrams_beside = o.speculate != "draft-only";
  const bool is_wanted = o.speculate.starts_with("draft") || (o.speculate == "auto" && o.draft);
  if (!is_wanted) return;
  options.speculation = is_own ? Speculation::kHead : is_eagle ? Speculation::kEagle : Speculation::kDraft;
}

void add_choice_options(CLI::App& command, GenerationOptions& o) {
  add_choice(command, "--preset", o.preset, preset_names(), preset_help())->type_name("NAME");
  SamplingParams defaults;
  static_cast<void>(apply_preset(o.preset, defaults));
  add_sampling_options(command, o.sampling, defaults);
}

void add_generation_options(CLI::App& command, GenerationOptions& o) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  command.add_option("-m,--model", o.model, "the model's file")->type_name("FILE");
  add_int(command, "-n,--predict", o.max_tokens, 1, kMax, "at most N tokens (until the end)");
  add_int(command, "-c,--ctx-size", o.n_ctx, 1, kMax, "context in tokens (the model's own)");
  add_int(command, "-t,--threads", o.n_threads, 1, 1024, "threads (see candor doctor)");
  add_int(command, "-s,--seed", o.seed, 0, std::numeric_limits<int64_t>::max(), "seed of the draws (a new one)");
  add_choice_options(command, o);
  command.add_option("--stop", o.stop, "end before this text; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  command.add_option("--stop-token", o.stop_ids, "end at this token id; may be repeated")
      ->type_name("ID")
      ->expected(1)
      ->take_all();
  add_choice(command, "--stop-scope", o.stop_scope, {"both", "content", "reasoning"}, "where these stops count");
  add_adapters(command, o.adapters, "use a LoRA adapter (PEFT's folder, GGUF); may be repeated");
  add_speculation_options(command, o);
  command.add_flag("--ignore-eos", o.ignore_eos, "go on after the model's end token");
  add_choice(command, "--on-context-full", o.on_context_full, {"stop", "crop"},
             "crop drops the oldest tokens and goes on");
  command.add_option("--system", o.system, "what the model is told first")->type_name("TEXT");
  command.add_option("--quantize", o.quantize, "encode the weights while loading: q4_k_m, q8_0, w8a8, ...")
      ->type_name("TYPE");
  add_fast_weights(command, o.fast_weights);
  add_device(command, o.backend);
  add_gpu_parts(command, o);
  add_kv_type(command, o.kv_type);
  command.add_flag("--no-kv-cache", o.no_kv_cache, "compute everything anew at each token, for measuring");
}

void add_device(CLI::App& command, std::string& device) {
  add_choice(command, "--device,--backend", device, {"auto", "cpu", "cuda", "reference"},
             "what computes: auto takes a GPU where there is one; reference: slow f32, the truth");
}

void add_gpu_parts(CLI::App& command, GenerationOptions& o) {
  constexpr int64_t kMostLayers = 1'000'000;
  add_int(command, "--gpu-layers", o.gpu_layers, 0, kMostLayers,
          "layers on the GPU, from the last one on (what makes a token quickest)");
  add_int(command, "--cpu-experts", o.cpu_experts, 0, kMostLayers,
          "leave experts on the CPU: those of so many layers, from the first one on");
}

EngineOptions engine_options(const GenerationOptions& o, const std::filesystem::path& model) {
  EngineOptions options;
  options.model_path = model;
  options.quantize = o.quantize;
  options.fast_weights = o.fast_weights;
  options.backend = engine::settled_device(o.backend);
  if (o.gpu_layers) options.gpu_layers = static_cast<int32_t>(*o.gpu_layers);
  if (o.cpu_experts) options.cpu_experts = static_cast<int32_t>(*o.cpu_experts);
  options.n_ctx = o.n_ctx.value_or(0);
  options.n_threads = static_cast<int32_t>(o.n_threads.value_or(0));
  apply_ranks(o.n_ranks, options);
  options.use_kv_cache = !o.no_kv_cache;
  options.max_running = static_cast<int32_t>(std::min<int64_t>(kMostSideBySide, o.n_answers.value_or(1)));
  apply_speculation(o, options);
  options.adapters = read_adapters(o.adapters);
  options.kv_type = find_kv_type(o.kv_type);
  if (o.kept_states) options.kept_states = static_cast<int32_t>(*o.kept_states);
  apply_disk_cache(o.disk_cache, options);
  return options;
}

SamplingParams sampling_params(const GenerationOptions& o) {
  SamplingParams params;
  static_cast<void>(apply_preset(o.preset, params));
  apply_sampling_options(o.sampling, params);
  if (o.seed) params.seed = static_cast<uint64_t>(*o.seed);
  params.max_tokens = o.max_tokens;
  params.stop = o.stop;
  for (const int64_t id : o.stop_ids) {
    const bool fits = id >= std::numeric_limits<int32_t>::min() && id <= std::numeric_limits<int32_t>::max();
    params.stop_ids.push_back(fits ? static_cast<TokenId>(id) : -1);
  }
  if (o.stop_scope == "content") params.stop_scope = StopScope::kContent;
  if (o.stop_scope == "reasoning") params.stop_scope = StopScope::kReasoning;
  params.ignore_eos = o.ignore_eos;
  params.logprobs = static_cast<int32_t>(o.logprobs.value_or(-1));
  return params;
}

Prompt make_prompt(const GenerationOptions& o, const ModelInfo& info, std::string text) {
  if (o.raw || !info.has_chat_template) {
    if (o.system) say_warning("--system has no effect: the prompt goes in as it is (no chat template)");
    return TextPrompt{std::move(text)};
  }
  ChatPrompt chat;
  if (o.system) chat.messages.push_back({"system", *o.system});
  chat.messages.push_back({"user", std::move(text)});
  return chat;
}

OnContextFull context_full_action(const GenerationOptions& o) {
  return o.on_context_full == "crop" ? OnContextFull::kCrop : OnContextFull::kStop;
}

std::unique_ptr<Engine> open_engine(const EngineOptions& options, int& code, const EngineOpener& open) {
  const EndsOnInterrupt at_once;
  ProgressBar bar("loading");
  auto engine = open(options, [&bar](uint64_t done, uint64_t total) { bar.update(done, total); });
  bar.finish();
  if (!engine) {
    say_error(engine.error().message);
    code = exit_code(engine.error());
    return nullptr;
  }
  code = kDone;
  tell_of_disk_cache(options, **engine);
  return std::move(*engine);
}

}  // namespace candor::apps
