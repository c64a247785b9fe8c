#include "model/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/state_specs.h"
#include "base/checked.h"
#include "model/adapter/adapted_ops.h"
#include "model/adapter/adapter.h"
#include "model/block.h"
#include "model/draft_head.h"
#include "model/families/families.h"
#include "model/fingerprint.h"
#include "model/prediction.h"
#include "model/rank_splits.h"
#include "model/slots.h"
#include "model/weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

namespace op = backend::op;
using backend::Activation;

// How many blocks before it keep keys and values of their own (before the one whose it reads), and how many a state.
MemoryLayers memory_layers(const ArchSpec& spec, size_t layer) {
  const size_t kv_block = spec.blocks[layer].shares_kv() ? static_cast<size_t>(spec.blocks[layer].kv_block) : layer;
  const auto begin = spec.blocks.begin();
  const auto count = [begin](size_t n, auto keeps) {
    return static_cast<int32_t>(std::count_if(begin, begin + static_cast<std::ptrdiff_t>(n), keeps));
  };
  if (!spec.keeps_kv) return {0, 0};
  return {count(kv_block, [](const BlockSpec& block) { return block.has_attention && !block.shares_kv(); }),
          count(layer, [](const BlockSpec& block) { return block.is_recurrent(); })};
}

// Of the K/V store, where layers differ; else nothing.
std::vector<backend::KvHeads> heads_of_layers(const ArchSpec& spec) {
  std::vector<backend::KvHeads> heads;
  for (const BlockSpec& block : spec.blocks) {
    if (block.has_attention && !block.shares_kv()) heads.push_back({block.attn.n_kv_heads, block.attn.head_dim});
  }
  const bool are_alike = std::ranges::all_of(heads, [&](const auto& layer) { return layer == heads.front(); });
  if (are_alike) heads.clear();
  return heads;
}

// Of texts that are read in both directions: what looks back alone has no meaning there.
Result<void> check_directions(const ArchSpec& spec) {
  if (!spec.is_bidirectional) return {};
  for (const BlockSpec& block : spec.blocks) {
    const bool looks_back = block.is_recurrent() || (block.attn.window_tokens > 0 && !block.attn.is_two_sided);
    if (!looks_back) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("\"{}.attention.causal\" is false, and a block {}: expected full "
                            "attention, or a window to both sides",
                            spec.family, block.is_recurrent() ? "keeps a state" : "has a window before it"));
  }
  return {};
}

int64_t count_parameters(std::span<const Binding> bindings) {
  int64_t n = 0;
  for (const Binding& binding : bindings) n += binding.view.shape.n_elements();
  return n;
}

}  // namespace

Model::Model(backend::Backend& backend, ArchSpec spec)
    : backend_(backend), spec_(std::move(spec)), adapted_ops_(std::make_unique<AdaptedOps>()) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::load(const formats::ModelFile& file, backend::Backend& backend,
                                           const LoadOptions& options) {
  CANDOR_ASSIGN(const Family* family, family_of(file));
  CANDOR_ASSIGN(ArchSpec spec, read_arch(file));
  fit_context(spec, options.n_ctx);
  CANDOR_TRY(check_directions(spec));
  CANDOR_TRY(check_ranks(spec, backend.info().n_ranks));
  std::unique_ptr<Model> model(new Model(backend, std::move(spec)));
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(file, *family, model->spec_));
  Contents contents(file);
  CANDOR_ASSIGN(model->weights_, upload_weights(bindings, {file, model->spec_, backend, contents}, options));
  model->outer_ = model->weights_.get();
  model->weight_bytes_ = model::weight_bytes(*model->weights_);
  model->n_parameters_ = count_parameters(bindings);
  CANDOR_ASSIGN(model->cost_, cost_of(file, model->spec_));
  CANDOR_ASSIGN(model->hash_, contents.fingerprint(model->spec_));
  CANDOR_TRY(file.check_intact());
  CANDOR_ASSIGN(model->number_, backend.add_model(model->hash_));
  return model;
}

Result<std::unique_ptr<Model>> Model::load_head(const formats::ModelFile& file, Model& model,
                                                backend::Backend& backend) {
  CANDOR_ASSIGN(ArchSpec arch, head_arch(file, model.spec_));
  if (backend.info().n_ranks == 1 && head_tokens(arch) > kDraftedTokens) arch.head.n_first = kDraftedTokens;
  std::unique_ptr<Model> head(new Model(backend, std::move(arch)));
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_head(file, head->spec_));
  model.kept_layers_ = head->spec_.embed.vector_layers;
  model.keeps_rows_ = model.keeps_rows_ || model.kept_layers_.empty();
  Contents contents(file);
  CANDOR_ASSIGN(head->weights_, upload_weights(bindings, {file, head->spec_, backend, contents}, {}));
  head->outer_ = model.weights_.get();
  head->weight_bytes_ = model::weight_bytes(*head->weights_);
  head->n_parameters_ = count_parameters(bindings);
  CANDOR_ASSIGN(head->hash_, contents.fingerprint(head->spec_));
  CANDOR_TRY(file.check_intact());
  CANDOR_ASSIGN(head->number_, backend.add_model(head->hash_));
  return head;
}

Result<std::unique_ptr<Model>> Model::load_part(const formats::ModelFile& file, const Family& family, ArchSpec arch,
                                                backend::Backend& backend) {
  std::unique_ptr<Model> part(new Model(backend, std::move(arch)));
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(file, family, part->spec_));
  Contents contents(file);
  CANDOR_ASSIGN(part->weights_, upload_weights(bindings, {file, part->spec_, backend, contents}, {}));
  part->outer_ = part->weights_.get();
  part->weight_bytes_ = model::weight_bytes(*part->weights_);
  part->n_parameters_ = count_parameters(bindings);
  CANDOR_ASSIGN(part->hash_, contents.fingerprint(part->spec_));
  CANDOR_TRY(file.check_intact());
  CANDOR_ASSIGN(part->number_, backend.add_model(part->hash_));
  return part;
}

backend::KvLayout Model::kv_layout(KvType type) const {
  return model::kv_layout(spec_, type);
}

Result<void> Model::reserve(int32_t max_rows, int32_t max_out_rows, int32_t max_positions) {
  return backend_.reserve_arena(arena_layout(spec_, max_rows, max_out_rows, max_positions));
}

backend::KvLayout kv_layout(const ArchSpec& spec, KvType type) {
  const backend::AttnSpec& attn = spec.blocks.front().attn;
  backend::KvLayout layout{0, attn.n_kv_heads, attn.head_dim, type};
  layout.latent_dim = attn.latent_dim;
  layout.heads = heads_of_layers(spec);
  for (const BlockSpec& block : spec.blocks) {
    if (block.has_attention && !block.shares_kv()) ++layout.n_layers;
    if (!block.is_recurrent()) continue;
    ++layout.state.n_layers;
    layout.state.layer_floats = block.state_floats();
  }
  if (!spec.keeps_kv) layout.n_layers = 1;
  return layout;
}

KvType usual_kv(const ArchSpec& spec, KvType of_backend) {
  constexpr float kLargeScale = 4.0f;  // times what is usual for the heads' width
  const auto is_coarse = [](const BlockSpec& block) {
    const float usual = 1.0f / std::sqrt(static_cast<float>(block.attn.head_dim));
    return block.has_attention && block.qk_norm != QkNorm::kNone && block.attn.scale >= kLargeScale * usual;
  };
  return std::ranges::any_of(spec.blocks, is_coarse) ? KvType::kF32 : of_backend;
}

void fit_context(ArchSpec& spec, int64_t n_ctx) {
  if (n_ctx < 1 || n_ctx > spec.short_context.positions) return;
  spec.is_short = true;
  for (BlockSpec& block : spec.blocks) block.attn.rope.frequency_factors = spec.short_context.frequency_factors;
}

Result<ModelPlan> plan_model(const formats::ModelFile& file, const backend::Backend& backend, int64_t n_ctx) {
  CANDOR_ASSIGN(const Family* family, family_of(file));
  ModelPlan plan;
  CANDOR_ASSIGN(plan.spec, read_arch(file));
  fit_context(plan.spec, n_ctx);
  CANDOR_TRY(check_directions(plan.spec));
  CANDOR_TRY(check_ranks(plan.spec, backend.info().n_ranks));
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(file, *family, plan.spec));
  CANDOR_ASSIGN(plan.weight_bytes, upload_bytes(bindings, plan.spec, backend));
  return plan;
}

Result<uint64_t> planned_part_bytes(const formats::ModelFile& file, const Family& family, const ArchSpec& arch,
                                    const backend::Backend& backend) {
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(file, family, arch));
  return upload_bytes(bindings, arch, backend);
}

Result<ModelPlan> plan_head(const formats::ModelFile& file, const ArchSpec& model, const backend::Backend& backend) {
  ModelPlan plan;
  CANDOR_ASSIGN(plan.spec, head_arch(file, model));
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_head(file, plan.spec));
  CANDOR_ASSIGN(plan.weight_bytes, upload_bytes(bindings, plan.spec, backend));
  return plan;
}

backend::StepTicket Model::launch(const backend::StepBatch& batch, backend::KvStore& kv) {
  return launch_blocks(0, checked_cast<int32_t>(spec_.blocks.size()), batch, kv);
}

backend::StepTicket Model::launch_blocks(int32_t first, int32_t end, const backend::StepBatch& batch,
                                         backend::KvStore& kv) {
  backend_.begin_pass({number_, first, end});
  backend_.begin_step(batch, kv);
  backend::Ops& ops = ops_for(batch);
  const Activation x{Slot::kX, batch.n_rows(), spec_.dim};
  if (first == 0) run_embedding(ops, x, batch);
  for (int32_t layer = first; layer < end; ++layer) {
    const auto place = static_cast<size_t>(layer);
    const BlockSpec& block = spec_.blocks[place];
    const BlockActivations act = activations(spec_, block, batch.n_rows());
    keep_layer(ops, layer, x);
    if (block.layer_dim > 0) {
      ops.run(op::Columns{act.layer_input, layer_inputs(batch.n_rows()), layer * block.layer_dim});
    }
    run_block(ops, block, weights_->blocks[place], act, memory_layers(spec_, place));
    if (layer < spec_.n_deep && !batch.vector_rows.empty()) ops.run(op::AddVectors{x, (layer + 1) * spec_.dim});
  }
  if (static_cast<size_t>(end) == spec_.blocks.size()) {
    keep_layer(ops, end, x);
    run_head(ops, x, checked_cast<int32_t>(batch.out_rows.size()));
  }
  return backend_.end_step();
}

backend::StepTicket Model::launch_attention(const backend::StepBatch& batch, backend::KvStore& kv) {
  backend_.begin_pass({.model = number_, .is_attention = true});
  backend_.begin_step(batch, kv);
  for (size_t layer = 0; layer < spec_.blocks.size(); ++layer) {
    const BlockSpec& block = spec_.blocks[layer];
    if (!block.has_attention) continue;
    const BlockActivations act = activations(spec_, block, batch.n_rows());
    const BlockWeights& own = weights_->blocks[layer];
    backend_.ops().run(
        op::Attend{attended(block, act),
                   {act.q, act.k, act.v, memory_layers(spec_, layer).kv, own.sinks.get(), own.distance_biases.get()},
                   &block.attn});
  }
  return backend_.end_step();
}

backend::RowsView Model::hidden(int32_t n_out) const {
  return backend_.read_rows({spec_.head.gives_stream ? Slot::kGiven : Slot::kLast, n_out, spec_.dim});
}

backend::RowsView Model::all_rows(int32_t n_rows) const {
  return backend_.read_rows({spec_.has_final_norm ? Slot::kH : Slot::kX, n_rows, spec_.dim});
}

backend::RowsView Model::kept_rows(int32_t n_rows) const {
  return kept_layers_.empty() ? all_rows(n_rows) : backend_.read_rows(kept_layers(kept_layers_.size(), n_rows));
}

backend::RowsView Model::stream_rows(int32_t n_rows) const {
  return backend_.read_rows({Slot::kX, n_rows, spec_.dim});
}

std::string Model::broken_part(const backend::StepBatch& batch, backend::KvStore& kv) {
  const auto is_broken = [&](backend::StepTicket ticket) {
    backend_.read_logits(ticket);
    const backend::RowsView stream = backend_.read_rows({Slot::kX, batch.n_rows(), spec_.dim});
    for (int32_t i = 0; i < batch.n_rows(); ++i) {
      if (!std::ranges::all_of(stream.row(i), [](float x) { return std::isfinite(x); })) return true;
    }
    return false;
  };
  if (is_broken(launch_blocks(0, 0, batch, kv))) return "the embedding (tensor token_embd.weight)";
  for (int32_t layer = 0; layer < checked_cast<int32_t>(spec_.blocks.size()); ++layer) {
    if (!is_broken(launch_blocks(layer, layer + 1, batch, kv))) continue;
    return fmt::format("block {} (tensors blk.{}.*)", layer, layer);
  }
  return "the head (tensors output_norm.weight and " +
         std::string(spec_.head.tied ? "token_embd.weight" : "output.weight") + ")";
}

// Those of the backend alone where no row uses an adapter.
backend::Ops& Model::ops_for(const backend::StepBatch& batch) {
  if (batch.uses.empty()) return backend_.ops();
  adapted_ops_->begin(backend_.ops(), batch, adapters_);
  return *adapted_ops_;
}

Result<AdapterId> Model::add_adapter(const AdapterFile& file, std::span<const std::vector<float>> lengths) {
  CANDOR_ASSIGN(std::unique_ptr<Adapter> adapter, Adapter::upload(file, lengths, {spec_, *weights_}, backend_));
  auto place = std::ranges::find(adapters_, nullptr);
  if (place == adapters_.end()) place = adapters_.emplace(place);
  *place = std::move(adapter);
  return checked_cast<AdapterId>(place - adapters_.begin());
}

void Model::drop_adapter(AdapterId id) {
  adapters_[static_cast<size_t>(id)] = nullptr;
}

size_t Model::adapter_bytes(AdapterId id) const {
  return adapters_[static_cast<size_t>(id)]->n_bytes();
}

void Model::run_embedding(backend::Ops& ops, Activation x, const backend::StepBatch& batch) {
  if (spec_.embed.joins_vectors) return join_vectors(ops, x);
  if (spec_.embed.vector_dim > 0) {
    return begin_with_vectors(ops, x, checked_cast<int32_t>(batch.vectors.size() / batch.vector_rows.size()));
  }
  ops.run(op::Embed{x, weights_->embedding.get(), spec_.embed.scale, true});
  if (spec_.embed.has_positions) ops.run(op::AddPositions{x, weights_->positions.get()});
  if (spec_.embed.n_types > 0) ops.run(op::AddTypes{x, weights_->types.get()});
  if (spec_.embed.has_norm) ops.run(op::Norm{x, x, weights_->embed_norm.weights(), spec_.final_norm});
  if (spec_.embed.layer_dim > 0) run_layer_inputs(ops, x);
}

const ModelWeights& Model::embedding_of() const {
  return weights_->embedding != nullptr ? *weights_ : *outer_;
}

void Model::join_vectors(backend::Ops& ops, Activation x) {
  const Activation vectors{Slot::kH, x.n_rows, x.n_cols};
  const Activation joined{Slot::kJoinedVectors, x.n_rows, 2 * x.n_cols};
  ops.run(op::Embed{x, embedding_of().embedding.get(), spec_.embed.scale});
  ops.run(op::Norm{x, x, weights_->join_token_norm.weights(), spec_.embed.join_norm});
  ops.run(op::Embed{.dst = vectors, .takes_vectors = true});
  ops.run(op::Norm{vectors, vectors, weights_->join_vector_norm.weights(), spec_.embed.join_norm});
  ops.run(op::Zip{joined, x, vectors, x.n_cols});
  ops.run(op::Linear{std::array{backend::LinearTerm{weights_->join.weight.get(), nullptr, x}}, joined});
}

// The first block finds the token's embedding beside the stream, normed.
void Model::begin_with_vectors(backend::Ops& ops, Activation x, int32_t n_cols) {
  const EmbedSpec& embed = spec_.embed;
  const Activation token{Slot::kToken, x.n_rows, x.n_cols};
  ops.run(op::Embed{token, embedding_of().embedding.get(), embed.scale});
  ops.run(op::Norm{token, token, weights_->join_token_norm.weights(), embed.join_norm});
  if (n_cols == x.n_cols) {
    ops.run(op::Embed{.dst = x, .takes_vectors = true});
  } else {
    const Activation vectors{Slot::kVectors, x.n_rows, embed.vector_dim};
    ops.run(op::Embed{.dst = vectors, .takes_vectors = true});
    if (embed.norms_vectors) ops.run(op::Norm{vectors, vectors, weights_->vectors_norm.weights(), embed.join_norm});
    ops.run(op::Linear{std::array{backend::LinearTerm{weights_->join.weight.get(), nullptr, x}}, vectors});
  }
  if (spec_.blocks.front().is_attn_bare) {
    ops.run(op::Norm{x, x, weights_->join_vector_norm.weights(), embed.join_norm});
  }
}

// The first n of them side by side. All of them are in kVectors, which a head's step reads its own rows into.
Activation Model::kept_layers(size_t n, int32_t n_rows) const {
  const bool is_last = (kept_layers_.size() - n) % 2 == 0;
  return {is_last ? Slot::kVectors : Slot::kVectorsBefore, n_rows, static_cast<int32_t>(n) * spec_.dim};
}

void Model::keep_layer(backend::Ops& ops, int32_t layer, Activation x) {
  const auto at = std::ranges::find(kept_layers_, layer);
  if (at == kept_layers_.end()) return;
  const auto n_before = static_cast<size_t>(at - kept_layers_.begin());
  const Activation kept = kept_layers(n_before + 1, x.n_rows);
  if (n_before == 0) return ops.run(op::Columns{kept, x, 0});
  const Activation before = kept_layers(n_before, x.n_rows);
  ops.run(op::Zip{kept, before, x, before.n_cols});
}

Activation Model::layer_inputs(int32_t n_rows) const {
  return {Slot::kLayerInputs, n_rows, spec_.embed.layer_dim * static_cast<int32_t>(spec_.blocks.size())};
}

// The mean of a norm of x's projection, which is scaled by D^-0.5 before (here its epsilon by D), and of the tokens'
// own vectors, scaled by their width, so that both have the same variance; times 2^0.5.
void Model::run_layer_inputs(backend::Ops& ops, Activation x) {
  const int32_t width = spec_.embed.layer_dim;
  const Activation inputs = layer_inputs(x.n_rows);
  const Activation projected{Slot::kLayerProjected, inputs.n_rows, inputs.n_cols};
  const Activation pieces{projected.slot, inputs.n_rows * (inputs.n_cols / width), width};
  backend::NormSpec norm = spec_.final_norm;
  norm.epsilon *= static_cast<float>(spec_.dim);
  ops.run(op::Linear{std::array{backend::LinearTerm{weights_->layer_projection.weight.get(), nullptr, projected}}, x});
  ops.run(op::Norm{pieces, pieces, weights_->layer_norm.weights(), norm});
  ops.run(op::Embed{.dst = inputs,
                    .table = weights_->layer_table.get(),
                    .scale = std::sqrt(static_cast<float>(width) / 2.0f),
                    .vector_token = spec_.embed.layer_image_token});
  ops.run(op::Add{inputs, projected, std::sqrt(0.5f)});
}

Activation Model::guessing_rows(backend::Ops& ops, Activation last) {
  const Activation rows{Slot::kGuess, last.n_rows, last.n_cols};
  const Projection& dense = weights_->word_dense;
  ops.run(op::Linear{std::array{backend::LinearTerm{dense.weight.get(), dense.bias.get(), rows}}, last});
  ops.run(op::Activate{rows, backend::GateKind::kGeluErf});
  ops.run(op::Norm{rows, rows, weights_->word_norm.weights(), spec_.final_norm});
  return rows;
}

void Model::run_head(backend::Ops& ops, Activation x, int32_t n_out) {
  const Norm& norm = weights_->final_norm.gain != nullptr ? weights_->final_norm : outer_->final_norm;
  const bool is_normed_whole = keeps_rows_ && spec_.has_final_norm;
  if (is_normed_whole) {
    const Activation rows{Slot::kH, x.n_rows, x.n_cols};
    ops.run(op::Norm{rows, x, norm.weights(), spec_.final_norm});
    x = rows;
  }
  if (n_out == 0) return;
  const Activation last{Slot::kLast, n_out, spec_.dim};
  const Activation given{spec_.head.gives_stream ? Slot::kGiven : Slot::kLast, n_out, spec_.dim};
  const Activation logits{Slot::kLogits, n_out, spec_.head.n_first > 0 ? spec_.head.n_first : head_tokens(spec_)};
  const ModelWeights& whose = spec_.head.is_own ? *weights_ : *outer_;
  const backend::Weight* head = spec_.head.tied ? whose.embedding.get() : whose.head.weight.get();
  ops.run(op::Gather{given, x});
  if (spec_.has_final_norm && !is_normed_whole) ops.run(op::Norm{last, given, norm.weights(), spec_.final_norm});
  if (spec_.head.is_absent) return;
  const Activation read = spec_.head.is_of_masked ? guessing_rows(ops, last) : last;
  ops.run(op::Linear{std::array{backend::LinearTerm{head, whose.head.bias.get(), logits}}, read});
  ops.run(op::Collect{logits, spec_.head.logits});
}

}  // namespace candor::model
