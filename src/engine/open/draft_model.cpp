#include "engine/open/draft_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "backend/op_specs.h"
#include "draft/draft_length.h"
#include "draft/head_drafter.h"
#include "formats/companion_name.h"
#include "model/draft_head.h"
#include "model/eagle.h"
#include "model/hub/hub_folder.h"
#include "model/prediction.h"
#include "model/rank_splits.h"

namespace candor::engine {
namespace {

constexpr uint64_t kKvBytes = uint64_t{256} << 20;  // of all slots; what does not fit them is read again
constexpr int32_t kLeastSlotBlocks = 4;

std::string name_of(const formats::ModelFile& file) {
  return file.info().paths.empty() ? std::string("the draft model") : file.info().paths.front().string();
}

Result<void> check_vocabulary(const text::Tokenizer& tokenizer, const text::Tokenizer& draft, const std::string& name) {
  const int32_t n_both = std::min(tokenizer.n_vocab(), draft.n_vocab());
  for (TokenId id = 0; id < n_both; ++id) {
    if (tokenizer.piece(id) == draft.piece(id)) continue;
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("{}: token {} is \"{}\", but the model's is \"{}\": a draft model needs the same vocabulary", name,
                    id, draft.piece(id), tokenizer.piece(id)));
  }
  if (tokenizer.n_vocab() == draft.n_vocab()) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: a vocabulary of {} tokens, but the model's has {}: a draft model needs the same", name,
                          draft.n_vocab(), tokenizer.n_vocab()));
}

// A head's file may leave the words to the model's.
Result<void> check_words(const formats::ModelFile& file, bool is_head, const text::Tokenizer& tokenizer) {
  if (is_head && file.meta("tokenizer.ggml.tokens") == nullptr) return {};
  const auto own = text::Tokenizer::from_model_file(file);
  CANDOR_TRY(file.check_intact());
  if (!own) return own.error();
  return check_vocabulary(tokenizer, **own, name_of(file));
}

std::optional<std::filesystem::path> head_beside(const std::filesystem::path& model) {
  const std::filesystem::path path = formats::head_name_of(model);
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? std::optional(path) : std::nullopt;
}

// A store has a layer, which a head without attention leaves empty.
backend::KvLayout layout_of(const model::ArchSpec& spec, const backend::Backend& backend) {
  backend::KvLayout layout = model::kv_layout(spec, model::usual_kv(spec, backend.info().default_kv));
  layout.n_layers = std::max(layout.n_layers, 1);
  return layout;
}

// Every slot holds the whole context where the budget allows.
draft::DraftSlots slots_of(const EngineOptions& options, const model::ArchSpec& spec, int32_t n_ctx,
                           uint64_t block_bytes) {
  const bool attends = std::ranges::any_of(spec.blocks, &model::BlockSpec::has_attention);
  if (!attends) return {options.max_running, kLeastSlotBlocks};
  const int64_t n_tokens = std::min<int64_t>(int64_t{n_ctx} + backend::kBlockTokens, spec.max_positions);
  const int32_t n_wanted = static_cast<int32_t>(n_tokens / backend::kBlockTokens);
  const uint64_t n_affordable = kKvBytes / (block_bytes * static_cast<uint64_t>(options.max_running));
  const int32_t n_most = static_cast<int32_t>(std::min<uint64_t>(n_affordable, INT32_MAX));
  return {options.max_running, std::min(n_wanted, std::max(kLeastSlotBlocks, n_most))};
}

Result<std::unique_ptr<formats::ModelFile>> open_draft_file(const EngineOptions& options) {
  CANDOR_ASSIGN(auto file, model::open_model(options.draft_path));
  if (options.speculation != Speculation::kEagle || model::is_eagle(*file)) return file;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: no EAGLE-3 head, which \"eagle:\" in front of it asks for; leave that out to draft by a "
                          "model or by a head of another kind",
                          name_of(*file)));
}

// Of a draft's file; nullptr: the model's own head.
DraftSource source_of(const formats::ModelFile* file) {
  if (file == nullptr) return DraftSource::kMtp;
  if (!model::is_head_alone(*file)) return DraftSource::kModel;
  return model::is_eagle(*file) ? DraftSource::kEagle : DraftSource::kMtp;
}

Error not_of_this_model(const formats::ModelFile& head, const Error& why) {
  return fail(why.kind, fmt::format("{}: no head of this model; name the one that was made for it: {}", name_of(head),
                                    why.message));
}

}  // namespace

bool has_draft_file(const EngineOptions& options) {
  return options.speculation == Speculation::kDraft || options.speculation == Speculation::kEagle;
}

bool drafts_by_ngrams(const EngineOptions& options) {
  const bool has_model = has_draft_file(options) || options.speculation == Speculation::kHead;
  return options.speculation == Speculation::kNgram || (has_model && options.ngrams_beside);
}

EngineOptions choose_drafts(EngineOptions options, const formats::ModelFile& file) {
  const bool is_auto = options.speculation == Speculation::kAuto;
  if (!is_auto && options.speculation != Speculation::kHead) return options;
  if (model::find_prediction(file)) {
    options.speculation = Speculation::kHead;
  } else if (const auto beside = head_beside(options.model_path)) {
    options.speculation = Speculation::kDraft;
    options.draft_path = *beside;
  } else if (is_auto) {
    options.speculation = Speculation::kOff;
  }
  return options;
}

Result<std::optional<DraftPlan>> open_draft(const EngineOptions& options, const formats::ModelFile& file,
                                            const backend::Backend& backend) {
  const bool is_own = options.speculation == Speculation::kHead;
  if (!has_draft_file(options) && !is_own) return std::nullopt;
  DraftPlan plan;
  if (!is_own) {
    CANDOR_ASSIGN(plan.file, open_draft_file(options));
  }
  plan.source = source_of(plan.file.get());
  if (plan.is_head()) {
    CANDOR_ASSIGN(model::ArchSpec spec, model::read_arch(file));
    model::fit_context(spec, options.n_ctx);
    auto planned = model::plan_head(is_own ? file : *plan.file, spec, backend);
    if (!planned && !is_own) return not_of_this_model(*plan.file, planned.error());
    CANDOR_ASSIGN(plan.model, std::move(planned));
    CANDOR_TRY(model::check_ranks(plan.model.spec, backend.info().n_ranks));
    return plan;
  }
  CANDOR_ASSIGN(plan.model, model::plan_model(*plan.file, backend, options.n_ctx));
  if (plan.model.spec.head.is_absent) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: reads texts and writes none, so it cannot make drafts", name_of(*plan.file)));
  }
  return plan;
}

Result<void> plan_slots(DraftPlan& plan, const EngineOptions& options, const backend::Backend& backend, int32_t n_ctx) {
  const backend::KvLayout layout = layout_of(plan.model.spec, backend);
  const auto block_bytes = static_cast<uint64_t>(backend.kv_block_bytes(layout));
  const auto n_ranks = static_cast<uint64_t>(backend.info().n_ranks_here);  // each has all states
  plan.slots = slots_of(options, plan.model.spec, n_ctx, block_bytes);
  plan.slots.n_states = layout.state.n_layers > 0 ? 2 * plan.slots.n_slots + draft::kMaxDrafts : 0;
  plan.kv_bytes =
      block_bytes * static_cast<uint64_t>(plan.slots.slot_blocks) * static_cast<uint64_t>(plan.slots.n_slots) +
      n_ranks * static_cast<uint64_t>(state_slot_bytes(layout.state)) * static_cast<uint64_t>(plan.slots.n_states);
  if (plan.is_head()) {
    const auto vector_bytes = static_cast<uint64_t>(draft::vector_width(plan.model.spec)) * sizeof(float);
    plan.kv_bytes += vector_bytes * draft::kKeptVectors * static_cast<uint64_t>(plan.slots.n_slots);
  }
  if (plan.slots.slot_blocks * backend::kBlockTokens > 2 * draft::kMaxDrafts) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: made for {} tokens of context, a draft model needs {} or more",
                                                    plan.file ? name_of(*plan.file) : std::string("the model"),
                                                    plan.model.spec.max_positions, backend::kBlockTokens));
}

Result<std::unique_ptr<model::Model>> load_draft_weights(const formats::ModelFile& own, bool is_head,
                                                         const EngineOptions& options, model::Model& model,
                                                         backend::Backend& backend) {
  if (!is_head) return model::Model::load(own, backend, {.n_ctx = options.n_ctx});
  return model::Model::load_head(own, model, backend);
}

Result<DraftModel> load_draft(DraftPlan plan, const EngineOptions& options, const DraftedModel& drafted,
                              backend::Backend& backend) {
  DraftModel draft;
  draft.file = std::move(plan.file);
  draft.slots = plan.slots;
  draft.source = plan.source;
  const formats::ModelFile& own = draft.file ? *draft.file : drafted.file;
  if (draft.file) CANDOR_TRY(check_words(*draft.file, draft.is_head(), drafted.tokenizer));
  CANDOR_ASSIGN(draft.model, load_draft_weights(own, draft.is_head(), options, drafted.model, backend));
  if (draft.is_head()) {
    CANDOR_ASSIGN(draft.tokens, model::drafted_tokens(own, draft.model->spec()));
  }
  if (draft.file) draft.file->drop_copies();
  if (draft.model->spec().vocab < drafted.tokenizer.n_vocab()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: its embedding has {} rows, expected {}, one for each token", name_of(own),
                            draft.model->spec().vocab, drafted.tokenizer.n_vocab()));
  }
  const backend::KvLayout layout = layout_of(draft.model->spec(), backend);
  CANDOR_ASSIGN(draft.kv,
                backend.make_kv(layout, {draft.slots.n_slots * draft.slots.slot_blocks, draft.slots.n_states}));
  return draft;
}

}  // namespace candor::engine
