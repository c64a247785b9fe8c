// candor fit: will it fit? Weights, K/V and activations against the memory available, before a weight is read.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/vision_text.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/engine.h"
#include "engine/open/loaded_model.h"
#include "engine/open/loaded_vision.h"
#include "engine/open/rank_plans.h"
#include "model/arch_spec.h"
#include "model/model.h"

namespace candor::apps {
namespace {

struct FitOptions {
  GenerationOptions generation;
  std::vector<std::string> positionals;
  std::optional<int64_t> n_sequences;
  bool json = false;
};

constexpr int64_t kDefaultSequences = 1;

// A context length that was asked for is planned for every sequence.
EngineOptions plan_options(const FitOptions& options, const std::filesystem::path& model) {
  EngineOptions engine = engine_options(options.generation, model);
  engine.max_running = static_cast<int32_t>(options.n_sequences.value_or(kDefaultSequences));
  engine.max_rows = std::max(engine.max_rows, engine.max_running);
  return engine;
}

Result<MemoryPlan> plan_for_every_sequence(EngineOptions& engine) {
  auto plan = Engine::plan(engine);
  if (!plan || engine.n_ctx == 0) return plan;
  const int64_t blocks = (engine.n_ctx + plan->kv_block_tokens - 1) / plan->kv_block_tokens * engine.max_running;
  engine.kv_bytes = static_cast<uint64_t>(blocks * plan->kv_block_tokens) * plan->kv_bytes_per_token;
  return Engine::plan(engine);
}

nlohmann::ordered_json to_json(const MemoryPlan& plan) {
  return {{"weight_bytes", plan.weight_bytes},
          {"kv_bytes", plan.kv_bytes},
          {"kv_bytes_per_token", plan.kv_bytes_per_token},
          {"kv_padding_per_token", plan.kv_padding_per_token},
          {"kv_tokens", int64_t{plan.kv_blocks} * plan.kv_block_tokens},
          {"kv_type", plan.kv_type},
          {"n_ctx", plan.n_ctx},
          {"state_bytes", plan.state_bytes},
          {"state_slots", plan.state_slots},
          {"kept_states", plan.kept_states},
          {"scratch_bytes", plan.scratch_bytes},
          {"draft_bytes", plan.draft_bytes},
          {"adapter_bytes", plan.adapter_bytes},
          {"copy_bytes", plan.copy_bytes},
          {"total_bytes", plan.total_bytes()},
          {"device", plan.device},
          {"available_bytes", plan.available_bytes},
          {"cgroup_limit_bytes", plan.limit_bytes},
          {"fits", plan.fits()}};
}

std::string to_text(const MemoryPlan& plan) {
  const Style style(STDOUT_FILENO);
  const std::string room =
      plan.available_bytes == 0
          ? "unknown"
          : format_bytes(plan.available_bytes) +
                (plan.limit_bytes != 0 ? fmt::format(" (cgroup limit {})", format_bytes(plan.limit_bytes)) : "");
  constexpr std::string_view kTooLarge =
      "it does not fit: a smaller model, a shorter -c, or --kv-type q8_0 or q4 needs less";
  const std::string verdict = plan.available_bytes == 0 ? "how much is available is not known here"
                              : plan.fits()             ? style.green("it fits")
                                                        : style.yellow(kTooLarge);
  const int64_t n_tokens = int64_t{plan.kv_blocks} * plan.kv_block_tokens;
  return (plan.device.empty() ? "" : fmt::format("{:<14} {:>10}   {}\n", "device", "", plan.device)) +
         fmt::format("{:<14} {:>10}\n", "weights", format_bytes(plan.weight_bytes)) +
         fmt::format(
             "{:<14} {:>10}   {} tokens x {} ({}{}), contexts of at most {}\n", "K/V", format_bytes(plan.kv_bytes),
             format_count(n_tokens), format_bytes(plan.kv_bytes_per_token), plan.kv_type,
             plan.kv_padding_per_token > 0 ? fmt::format("; {} of it padding", format_bytes(plan.kv_padding_per_token))
                                           : "",
             format_count(plan.n_ctx)) +
         (plan.state_slots > 0
              ? fmt::format("{:<14} {:>10}   {} recurrent states, {} of them kept for prefixes\n", "states",
                            format_bytes(plan.state_bytes), plan.state_slots, plan.kept_states)
              : "") +
         fmt::format("{:<14} {:>10}\n", "activations", format_bytes(plan.scratch_bytes)) +
         (plan.draft_bytes > 0 ? fmt::format("{:<14} {:>10}\n", "draft model", format_bytes(plan.draft_bytes)) : "") +
         (plan.adapter_bytes > 0 ? fmt::format("{:<14} {:>10}\n", "adapters", format_bytes(plan.adapter_bytes)) : "") +
         (plan.copy_bytes > 0 ? fmt::format("{:<14} {:>10}   while loading, before K/V and activations\n", "copies",
                                            format_bytes(plan.copy_bytes))
                              : "") +
         fmt::format("{:<14} {:>10}\n{:<14} {:>10}\n{}\n", "in all", format_bytes(plan.total_bytes()), "available",
                     room, verdict);
}

nlohmann::ordered_json ranks_json(const std::vector<MemoryPlan>& ranks) {
  auto list = nlohmann::ordered_json::array();
  for (const MemoryPlan& plan : ranks) {
    list.push_back({{"weight_bytes", plan.weight_bytes},
                    {"kv_bytes", plan.kv_bytes},
                    {"state_bytes", plan.state_bytes},
                    {"adapter_bytes", plan.adapter_bytes},
                    {"scratch_bytes", plan.scratch_bytes},
                    {"copy_bytes", plan.copy_bytes},
                    {"total_bytes", plan.total_bytes()}});
  }
  return list;
}

std::string shares_text(const std::vector<MemoryPlan>& ranks, const engine::RankExchanges& exchanges) {
  if (ranks.empty()) return "";
  std::string out =
      fmt::format("{:<14} {:>10}   a token, {:.3g} a layer\n", "exchanges", exchanges.n_of_token, exchanges.of_layer);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const MemoryPlan& plan = ranks[rank];
    out += fmt::format("{:<14} {:>10}   weights {}, K/V {}, activations {}{}\n", fmt::format("rank {}", rank),
                       format_bytes(plan.total_bytes()), format_bytes(plan.weight_bytes), format_bytes(plan.kv_bytes),
                       format_bytes(plan.scratch_bytes),
                       plan.state_bytes > 0 ? ", states " + format_bytes(plan.state_bytes) : "");
  }
  return out;
}

// Beside the plan: it comes with the first image.
VisionAnswer vision_of(const EngineOptions& options) {
  CANDOR_ASSIGN(const auto file, engine::open_model_file(options));
  CANDOR_ASSIGN(const model::ArchSpec spec, model::read_arch(*file));
  return engine::vision_figures(options, spec);
}

int run(const FitOptions& options) {
  auto choice = choose_model(options.generation.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("fit takes one model; what is \"{}\"?", choice->texts[0])), kUserInput;
  EngineOptions engine = plan_options(options, choice->model);
  const auto plan = plan_for_every_sequence(engine);
  if (!plan) return say_error(plan.error().message), exit_code(plan.error());
  const auto ranks = engine::plan_ranks(engine, *plan);
  if (!ranks) return say_error(ranks.error().message), exit_code(ranks.error());
  engine::RankExchanges exchanges;
  if (!ranks->empty()) {
    if (const auto counted = engine::count_exchanges(engine)) exchanges = *counted;
  }
  const VisionAnswer vision = vision_of(engine);
  if (options.json) {
    auto json = to_json(*plan);
    json["images"] = vision_json(vision);
    if (!ranks->empty()) {
      json["ranks"] = ranks_json(*ranks);
      json["exchanges_of_token"] = exchanges.n_of_token;
    }
    write_out(json.dump(2) + "\n");
  } else {
    const std::string text = vision_text(vision);
    const std::string images =
        text.empty() ? ""
                     : fmt::format("{:<14} {:>10}   with the first image, beside the rest: {}\n", "images", "", text);
    write_out(shares_text(*ranks, exchanges) + images + to_text(*plan));
  }
  return plan->fits() ? kDone : kUserInput;
}

}  // namespace

void add_fit(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("fit", "will it fit: weights, K/V and activations against this machine");
  const auto options = std::make_shared<FitOptions>();
  constexpr int64_t kMaxContext = std::numeric_limits<int32_t>::max();
  command->add_option("model", options->positionals, "[MODEL]");
  command->add_option("-m,--model", options->generation.model, "the model's file")->type_name("FILE");
  add_int(*command, "-c,--ctx-size", options->generation.n_ctx, 1, kMaxContext, "tokens of each context");
  add_int(*command, "--sequences", options->n_sequences, 1, 4096, "sequences at once (1)");
  add_kv_type(*command, options->generation.kv_type);
  add_kept_states(*command, options->generation.kept_states);
  add_ranks(*command, options->generation.n_ranks);
  add_adapters(*command, options->generation.adapters, "count a LoRA adapter; may be repeated");
  add_speculation_options(*command, options->generation);
  command
      ->add_option("--quantize", options->generation.quantize, "as if encoded while loading: q4_k_m, q8_0, w8a8, ...")
      ->type_name("TYPE");
  add_fast_weights(*command, options->generation.fast_weights);
  add_device(*command, options->generation.backend);
  add_gpu_parts(*command, options->generation);
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
