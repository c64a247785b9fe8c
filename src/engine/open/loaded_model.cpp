#include "engine/open/loaded_model.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "backend/op_specs.h"
#include "candor/kv_type.h"
#include "draft/head_drafter.h"
#include "draft/model_drafter.h"
#include "engine/open/adapter_loading.h"
#include "engine/open/fim_tokens.h"
#include "engine/open/memory_plan.h"
#include "engine/open/rank_group.h"
#include "engine/open/step_costs.h"
#include "kernels/kernels.h"
#include "model/arch_spec.h"
#include "model/hub/hub_folder.h"
#include "platform/float_mode.h"
#include "platform/topology.h"
#include "quantize/fast_weights.h"
#include "quantize/quantizer.h"
#include "quantize/recipe.h"

namespace candor::engine {
namespace {

constexpr int32_t kMaxRows = 1 << 16;
constexpr int32_t kMaxRunning = 1 << 12;
constexpr int32_t kMaxQueued = 1 << 20;
constexpr int32_t kMaxThreads = 1024;
constexpr int32_t kMaxKeptStates = 1 << 20;
constexpr double kMaxStepMs = 3.6e6;

Result<void> in_range(const char* name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return fail(ErrorKind::kInvalidInput, std::string(name) + " is " + std::to_string(value) + ", expected " +
                                            std::to_string(min) + " to " + std::to_string(max));
}

Result<void> check_vocabulary(const LoadedModel& loaded) {
  const int32_t n_logits = loaded.model->spec().vocab;
  if (loaded.n_vocab() <= n_logits) return {};
  return fail(ErrorKind::kInvalidInput, "the tokenizer has " + std::to_string(loaded.n_vocab()) +
                                            " tokens, but the model's embedding has " + std::to_string(n_logits) +
                                            " rows: the file contradicts itself");
}

Result<void> reserve_memory(LoadedModel& loaded, const MemoryPlan& plan) {
  EngineOptions& options = loaded.options;
  options.n_ctx = plan.n_ctx;
  options.kv_blocks = plan.kv_blocks;
  const KvType usual = model::usual_kv(loaded.model->spec(), loaded.backend->info().default_kv);
  const backend::KvLayout layout = loaded.model->kv_layout(options.kv_type.value_or(usual));
  CANDOR_ASSIGN(loaded.kv, loaded.backend->make_kv(layout, {plan.kv_blocks, plan.state_slots}));
  const model::ArchSpec* draft = loaded.draft ? &loaded.draft->model->spec() : nullptr;
  return loaded.backend->reserve_arena(step_arena(options, loaded.model->spec(), draft, plan.n_ctx));
}

Result<std::unique_ptr<formats::ModelFile>> open_quantised(const EngineOptions& options) {
  CANDOR_ASSIGN(auto file, model::open_model(options.model_path));
  if (options.quantize.empty()) return file;
  quantize::QuantizeOptions quantize_options;
  CANDOR_ASSIGN(quantize_options.recipe, quantize::find_recipe(options.quantize));
  quantize_options.n_threads =
      options.n_threads > 0 ? options.n_threads : platform::advise_threads(platform::read_topology()).n_threads;
  return quantize::quantize_on_load(std::move(file), quantize_options);
}

// What a head reads before its first draft takes a step, where costs are known.
int32_t first_head_rows(const std::optional<StepCosts>& costs) {
  if (!costs || costs->points.empty() || costs->draft_read_ms <= 0.0) return draft::kHeadRows;
  const double n_rows = costs->points.front().ms / costs->draft_read_ms;
  return static_cast<int32_t>(std::clamp<double>(n_rows, draft::kLeastHeadRows, draft::kHeadRows));
}

}  // namespace

int32_t LoadedModel::window_tokens() const {
  int32_t longest = 0;
  for (const model::BlockSpec& block : model->spec().blocks) {
    if (block.attn.window_tokens == 0) return 0;
    longest = std::max(longest, block.attn.window_tokens);
  }
  return longest;
}

std::unique_ptr<draft::Drafter> make_drafter(LoadedModel& loaded) {
  DraftModel& draft = *loaded.draft;
  if (draft.is_head()) {
    const draft::HeadDrafter::Limits limits{loaded.options.max_rows, loaded.n_vocab(),
                                            first_head_rows(loaded.options.costs), draft.tokens};
    return std::make_unique<draft::HeadDrafter>(*loaded.backend, *draft.model, *draft.kv, draft.slots, limits,
                                                *loaded.kernels);
  }
  return std::make_unique<draft::ModelDrafter>(*loaded.backend, *draft.model, *draft.kv, draft.slots,
                                               loaded.options.max_rows, loaded.n_vocab(), *loaded.kernels);
}

Result<std::unique_ptr<formats::ModelFile>> open_model_file(const EngineOptions& options) {
  CANDOR_ASSIGN(auto file, open_quantised(options));
  return options.fast_weights ? quantize::read_fast(std::move(file)) : std::move(file);
}

Result<void> check_options(const EngineOptions& options) {
  CANDOR_TRY(in_range("n_threads", options.n_threads, 0, kMaxThreads));
  CANDOR_TRY(in_range("n_ctx", options.n_ctx, 0, std::numeric_limits<int32_t>::max()));
  CANDOR_TRY(in_range("kv_blocks", options.kv_blocks, 0, std::numeric_limits<int32_t>::max()));
  CANDOR_TRY(in_range("kept_states", options.kept_states.value_or(0), 0, kMaxKeptStates));
  CANDOR_TRY(in_range("max_running", options.max_running, 1, kMaxRunning));
  CANDOR_TRY(in_range("max_rows", options.max_rows, options.max_running, kMaxRows));
  CANDOR_TRY(in_range("prefill_rows", options.prefill_rows, 0, options.max_rows));
  CANDOR_TRY(in_range("max_queued", options.max_queued, 0, kMaxQueued));
  if (options.draft_path.empty() == has_draft_file(options)) {
    return fail(ErrorKind::kInvalidInput,
                options.draft_path.empty()
                    ? "speculation by a draft model or a head needs draft_path (--draft): a model file of the same "
                      "vocabulary, or a head of the model"
                    : "draft_path (--draft) names " + options.draft_path.string() +
                          ", but speculation is not by a draft model");
  }
  if (!(options.step_ms >= 0.0 && options.step_ms <= kMaxStepMs)) {
    return fail(ErrorKind::kInvalidInput,
                "step_ms is " + std::to_string(options.step_ms) + ", expected 0 to " + std::to_string(kMaxStepMs));
  }
  return options.costs ? check_costs(*options.costs) : Result<void>{};
}

namespace {

// A step holds an image whose rows see one another, beside those that decode.
Result<void> add_vision(LoadedModel& loaded) {
  CANDOR_ASSIGN(const model::ArchSpec spec, model::read_arch(*loaded.file));
  CANDOR_ASSIGN(loaded.vision, open_vision(loaded.options, spec));
  if (loaded.vision == nullptr || !loaded.vision->spec.prompt.is_seen_whole) return {};
  const int32_t n_rows = vision::most_rows(loaded.vision->spec);
  loaded.options.max_rows = std::max(loaded.options.max_rows, n_rows + loaded.options.max_running);
  return {};
}

// Of the ranks' K/V the host has a part.
void watch_attention(LoadedModel& loaded) {
  if (loaded.vision == nullptr || loaded.backend->info().n_ranks > 1) return;
  auto watch = std::make_unique<backend::AttentionWatch>(std::move(loaded.backend));
  loaded.attention = watch.get();
  loaded.backend = std::move(watch);
}

Result<void> load_parts(LoadedModel& loaded, const BackendFactory& make_backend, const LoadProgress& progress) {
  CANDOR_ASSIGN(loaded.file, open_model_file(loaded.options));
  loaded.options = choose_drafts(loaded.options, *loaded.file);
  CANDOR_TRY(add_vision(loaded));
  const EngineOptions options = loaded.options;
  CANDOR_ASSIGN(loaded.backend, make_backend(options));
  watch_attention(loaded);
  CANDOR_ASSIGN(loaded.kernels, kernels::select_table_from_environment());
  CANDOR_ASSIGN(auto draft, open_draft(options, *loaded.file, *loaded.backend));
  CANDOR_ASSIGN(const MemoryPlan plan, plan_memory(options, *loaded.file, *loaded.backend, draft ? &*draft : nullptr));
  CANDOR_TRY(check_fits(plan));
  CANDOR_ASSIGN(loaded.tokenizer, text::Tokenizer::from_model_file(*loaded.file));
  CANDOR_ASSIGN(loaded.model,
                model::Model::load(*loaded.file, *loaded.backend, {.progress = progress, .n_ctx = options.n_ctx}));
  CANDOR_ASSIGN(loaded.head, model::read_text_head(*loaded.file, loaded.model->spec()));
  CANDOR_ASSIGN(loaded.adapters, load_adapters(options, *loaded.file, *loaded.model));
  loaded.options = fit_options(loaded.options, loaded.model->spec(), loaded.head.max_tokens);
  CANDOR_TRY(check_vocabulary(loaded));
  if (draft) {
    const DraftedModel drafted{*loaded.file, *loaded.tokenizer, *loaded.model};
    CANDOR_ASSIGN(loaded.draft, load_draft(std::move(*draft), options, drafted, *loaded.backend));
  }
  loaded.file->drop_copies();
  CANDOR_TRY(reserve_memory(loaded, plan));
  const bool wants_costs = options.max_running > 1 || max_drafts(options) > 0;
  if (!options.costs && wants_costs && options.use_kv_cache && !loaded.model->spec().is_bidirectional) {
    const platform::ScopedFloatMode float_mode;
    loaded.options.costs = measure_costs(loaded);
  }
  return loaded.backend->health();
}

}  // namespace

Result<LoadedModel> load_model(const EngineOptions& options, const BackendFactory& make_backend,
                               const LoadProgress& progress) {
  CANDOR_TRY(check_options(options));
  LoadedModel loaded;
  loaded.options = options;
  const auto done = load_parts(loaded, make_backend, progress);
  if (loaded.file) CANDOR_TRY(loaded.file->check_intact());
  if (!done) return done.error();
  return loaded;
}

namespace {

ReadingInfo reading_of(const model::TextHead& head, const model::ArchSpec& spec) {
  return {.writes = !spec.head.is_absent && !spec.is_bidirectional && !head.only_ranks,
          .pooling = head.pooling,
          .dim = head.dim(spec),
          .normalises = head.normalises,
          .labels = head.labels,
          .labels_tokens = head.labels_tokens,
          .weighs_words = head.sparse.exists(),
          .token_dim = head.token_dim(spec),
          .answers_yes = head.answers_yes,
          .prompts = head.prompts,
          .default_prompt = head.default_prompt};
}

}  // namespace

ModelInfo describe(const LoadedModel& loaded) {
  ModelInfo info;
  const model::ArchSpec& spec = loaded.model->spec();
  const backend::BackendInfo& backend = loaded.backend->info();
  info.paths = loaded.file->info().paths;
  info.format = loaded.file->info().format;
  info.file_bytes = loaded.file->info().n_bytes;
  info.family = spec.family;
  info.tokenizer = loaded.tokenizer->description();
  info.backend = backend.name;
  info.backend_description = backend.description;
  info.device_note = backend.note;
  info.n_threads = backend.n_threads;
  info.weight_bytes = loaded.model->weight_bytes();
  info.kv_bytes = loaded.kv->n_bytes();
  info.kv_blocks = loaded.kv->n_blocks();
  info.kv_block_tokens = backend::kBlockTokens;
  info.kv_type = name_of(loaded.kv->layout().type);
  info.n_parameters = loaded.model->n_parameters();
  info.used_parameters = static_cast<int64_t>(loaded.model->cost().used_parameters());
  info.used_weight_bytes =
      static_cast<uint64_t>(loaded.model->cost().read_share(1) * static_cast<double>(info.weight_bytes));
  info.arithmetic = name_of(loaded.model->cost().arithmetic);
  info.n_fast_matrices = quantize::n_fast_matrices(*loaded.file);
  info.n_layers = static_cast<int32_t>(spec.blocks.size());
  info.dim = spec.dim;
  info.n_vocab = loaded.n_vocab();
  info.n_ctx_train = spec.max_positions;
  info.n_ctx = loaded.n_ctx();
  info.bos = loaded.tokenizer->special().bos;
  info.adds_bos = loaded.tokenizer->special().add_bos;
  info.eos = loaded.tokenizer->special().eos;
  info.pad = loaded.tokenizer->special().pad;
  if (loaded.vision != nullptr) info.images = loaded.vision->spec.family;
  info.shows_attention = loaded.attention != nullptr;
  info.reading = reading_of(loaded.head, spec);
  info.fim = find_fim_tokens(*loaded.file, *loaded.tokenizer);
  const auto ends = loaded.tokenizer->end_tokens();
  info.end_tokens.assign(ends.begin(), ends.end());
  const bool drafts = max_drafts(loaded.options) > 0;
  if (drafts && drafts_by_ngrams(loaded.options)) info.drafters.push_back(DraftSource::kNgram);
  if (loaded.draft) {
    if (drafts) info.drafters.push_back(loaded.draft->source);
    info.draft_path = loaded.options.draft_path;
    info.draft_parameters = loaded.draft->model->n_parameters();
  }
  const auto response = formats::meta_string(*loaded.file, "tokenizer.response_template");
  if (response && *response) info.response_template = **response;
  info.hash = loaded.model->hash();
  if (loaded.options.costs) info.costs = *loaded.options.costs;
  return info;
}

}  // namespace candor::engine
