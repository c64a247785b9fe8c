#include "engine/open/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "backend/op_specs.h"
#include "candor/info.h"
#include "candor/kv_type.h"
#include "draft/draft_length.h"
#include "engine/open/adapter_loading.h"
#include "engine/open/kv_budget.h"
#include "model/model.h"
#include "model/text_head.h"
#include "platform/topology.h"

namespace candor::engine {
namespace {

// By default kept: enough for some conversations, a few in any case.
constexpr int64_t kKeptBytes = int64_t{256} << 20;
constexpr int64_t kLeastKept = 4;
constexpr int64_t kMostKept = 64;

}  // namespace

std::string gigabytes(uint64_t n_bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(n_bytes) / 1e9);
}

int32_t max_drafts(const EngineOptions& options) {
  if (options.speculation == Speculation::kOff || !options.use_kv_cache) return 0;
  return std::min(draft::kMaxDrafts, options.max_rows - options.max_running);
}

// What a sequence has, and what the step writes instead of it: behind its rows and behind each draft.
int32_t needed_states(const EngineOptions& options, const backend::StateLayout& layout) {
  return layout.n_layers > 0 ? 2 * options.max_running + max_drafts(options) : 0;
}

int32_t kept_states(const EngineOptions& options, const backend::StateLayout& layout) {
  if (layout.n_layers == 0 || !options.prefix_cache || !options.use_kv_cache) return 0;
  if (options.kept_states) return *options.kept_states;
  return static_cast<int32_t>(std::clamp(kKeptBytes / state_slot_bytes(layout), kLeastKept, kMostKept));
}

int32_t max_shown_rows(const EngineOptions& options, const model::ArchSpec& spec) {
  if (spec.head.is_absent || spec.is_bidirectional) return options.max_rows;
  constexpr int32_t kEnough = 32;  // the weights of the head are read once for all of them
  return std::min(kEnough, options.max_rows);
}

int32_t max_out_rows(const EngineOptions& options, const model::ArchSpec& spec) {
  return options.max_running + max_drafts(options) + max_shown_rows(options, spec);
}

backend::ArenaLayout step_arena(const EngineOptions& options, const model::ArchSpec& spec, const model::ArchSpec* draft,
                                int32_t n_ctx) {
  backend::ArenaLayout layout = model::arena_layout(spec, options.max_rows, max_out_rows(options, spec), n_ctx);
  if (draft == nullptr) return layout;
  const backend::ArenaLayout other = model::arena_layout(*draft, options.max_rows, max_out_rows(options, *draft), 0);
  for (size_t slot = 0; slot < layout.slot_cols.size(); ++slot) {
    layout.slot_cols[slot] = std::max(layout.slot_cols[slot], other.slot_cols[slot]);
  }
  layout.max_input_cols = std::max(layout.max_input_cols, other.max_input_cols);
  layout.max_positions = std::max(layout.max_positions, std::min(other.max_positions, n_ctx + backend::kBlockTokens));
  return layout;
}

EngineOptions fit_options(EngineOptions options, const model::ArchSpec& spec, std::optional<int32_t> text_tokens) {
  if (!spec.is_bidirectional) return options;
  if (options.n_ctx == 0) options.n_ctx = text_tokens.value_or(spec.max_positions);
  const auto n_ctx = static_cast<int32_t>(std::min<int64_t>(options.n_ctx, spec.max_positions));
  options.max_rows = std::max({options.max_rows, n_ctx, options.max_running});
  options.prefix_cache = false;
  options.speculation = Speculation::kOff;
  if (options.kv_blocks == 0 && options.kv_bytes == 0) {
    options.kv_blocks = options.max_rows / backend::kBlockTokens + 2 * options.max_running;
  }
  return options;
}

Result<MemoryPlan> plan_memory(const EngineOptions& asked, const formats::ModelFile& file,
                               const backend::Backend& backend, DraftPlan* draft) {
  CANDOR_ASSIGN(const model::ModelPlan model, model::plan_model(file, backend, asked.n_ctx));
  CANDOR_ASSIGN(const model::TextHead head, model::read_text_head(file, model.spec));
  if (model.spec.is_bidirectional && draft != nullptr) {
    return fail(ErrorKind::kInvalidInput,
                "draft_path (--draft) names a draft model, but this model writes nothing that "
                "could be drafted");
  }
  const EngineOptions options = fit_options(asked, model.spec, head.max_tokens);
  const KvType kv_type = options.kv_type.value_or(model::usual_kv(model.spec, backend.info().default_kv));
  const backend::KvLayout layout = model::kv_layout(model.spec, kv_type);
  const int64_t block_bytes = backend.kv_block_bytes(layout);
  // Each rank has states, copies and scratch of its own.
  const auto n_ranks = static_cast<uint64_t>(backend.info().n_ranks_here);
  CANDOR_ASSIGN(const KvBudget budget, plan_kv(options, model.spec.max_positions, block_bytes));
  const platform::Topology topology = platform::read_topology();
  MemoryPlan plan;
  plan.weight_bytes = model.weight_bytes;
  plan.copy_bytes = file.copy_bytes() * n_ranks;
  plan.kv_bytes = static_cast<uint64_t>(block_bytes) * static_cast<uint64_t>(budget.n_blocks);
  plan.kept_states = kept_states(options, layout.state);
  plan.state_slots = needed_states(options, layout.state) + plan.kept_states;
  plan.state_bytes =
      n_ranks * static_cast<uint64_t>(plan.state_slots) * static_cast<uint64_t>(state_slot_bytes(layout.state));
  if (draft != nullptr) {
    CANDOR_TRY(plan_slots(*draft, options, backend, budget.n_ctx));
    plan.draft_bytes = draft->model.weight_bytes + draft->kv_bytes;
  }
  CANDOR_ASSIGN(plan.adapter_bytes, adapter_bytes(asked, model.spec, file, backend));
  const model::ArchSpec* draft_spec = draft != nullptr ? &draft->model.spec : nullptr;
  plan.scratch_bytes = backend.arena_bytes(step_arena(options, model.spec, draft_spec, budget.n_ctx));
  plan.kv_bytes_per_token = static_cast<uint64_t>(block_bytes) / backend::kBlockTokens;
  plan.kv_padding_per_token =
      static_cast<uint64_t>(block_bytes - backend::kv_block_bytes(layout)) / backend::kBlockTokens;
  plan.n_ctx = budget.n_ctx;
  plan.kv_blocks = budget.n_blocks;
  plan.kv_block_tokens = backend::kBlockTokens;
  plan.kv_type = name_of(kv_type);
  if (backend.info().device_bytes > 0) {
    plan.device = backend.info().description;
    plan.available_bytes =
        backend.info().free_bytes + (backend.info().uses_host_too ? topology.memory_available_bytes : 0);
  } else {
    plan.available_bytes = topology.memory_available_bytes;
    plan.limit_bytes = topology.memory_limit.value_or(0);
  }
  return plan;
}

Result<void> check_fits(const MemoryPlan& plan) {
  if (plan.fits()) return {};
  return fail(
      ErrorKind::kOutOfMemory,
      fmt::format("the model needs {} of memory{} ({} of weights, {} of K/V, {} of activations{}{}{}{}), and {} are "
                  "available; choose a smaller model, or a shorter context with -c",
                  gigabytes(plan.total_bytes()), plan.device.empty() ? "" : " of " + plan.device,
                  gigabytes(plan.weight_bytes), gigabytes(plan.kv_bytes), gigabytes(plan.scratch_bytes),
                  plan.state_bytes > 0 ? ", " + gigabytes(plan.state_bytes) + " of recurrent states" : "",
                  plan.draft_bytes > 0 ? ", " + gigabytes(plan.draft_bytes) + " of a draft model" : "",
                  plan.adapter_bytes > 0 ? ", " + gigabytes(plan.adapter_bytes) + " of adapters" : "",
                  plan.copy_bytes > 0 ? ", while loading " + gigabytes(plan.copy_bytes) + " of copies" : "",
                  gigabytes(plan.available_bytes)));
}

}  // namespace candor::engine
