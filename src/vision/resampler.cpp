#include "vision/resampler.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>
#include <utility>

#include "backend/step_batch.h"
#include "model/families/families.h"
#include "model/hub/hub_names.h"
#include "model/tensor_roles.h"
#include "vision/grid_tables.h"

namespace candor::vision {
namespace {

using model::TensorName;
using model::TensorRole;

constexpr std::string_view kQueries = "resampler.query";
constexpr std::string_view kLastNorm = "resampler.norm.weight";
constexpr KvType kResamplerKv = KvType::kF32;

constexpr TensorName kTileTensors[] = {
    {TensorRole::kAttnNorm, "resampler.blk.*.ln_kv.weight"},   {TensorRole::kQ, "resampler.blk.*.attn_q.weight"},
    {TensorRole::kK, "resampler.blk.*.attn_k.weight"},         {TensorRole::kV, "resampler.blk.*.attn_v.weight"},
    {TensorRole::kAttnOut, "resampler.blk.*.attn_out.weight"},
};
constexpr TensorName kOwnTensors[] = {
    {TensorRole::kAttnNorm, "resampler.blk.*.ln_q.weight"},    {TensorRole::kQ, "resampler.blk.*.attn_q.weight"},
    {TensorRole::kK, "resampler.blk.*.attn_k.weight"},         {TensorRole::kV, "resampler.blk.*.attn_v.weight"},
    {TensorRole::kAttnOut, "resampler.blk.*.attn_out.weight"}, {TensorRole::kFfnNorm, "resampler.blk.*.ln2.weight"},
    {TensorRole::kGate, "resampler.blk.*.ffn_gate.weight"},    {TensorRole::kUp, "resampler.blk.*.ffn_up.weight"},
    {TensorRole::kDown, "resampler.blk.*.ffn_down.weight"},    {TensorRole::kFinalNorm, kLastNorm},
};

// One of the two models of a block.
struct Part {
  int32_t block = 0;
  bool is_own = false;
  bool is_last = false;
};

model::ArchSpec arch_of(const ResamplerSpec& spec, const Part& part) {
  model::ArchSpec arch;
  arch.family = "clip";
  arch.dim = spec.dim;
  arch.vocab = 1;
  arch.max_positions = 1;
  arch.blocks = {spec.block};
  arch.first_block = part.block;
  if (!part.is_own) arch.blocks.front().ffn.ffn_dim = 0;
  arch.final_norm = spec.block.norm;
  arch.has_final_norm = part.is_own && part.is_last;
  arch.head.is_absent = true;
  arch.keeps_kv = false;
  return arch;
}

model::Family family_of(const Part& part) {
  const std::span<const TensorName> own = kOwnTensors;
  if (!part.is_own) return {"clip", nullptr, kTileTensors, {}, {}};
  return {"clip", nullptr, part.is_last ? own : own.first(own.size() - 1), {}, {}};
}

// Of a block's tensors those that are its.
class PartFile final : public formats::ModelFile {
 public:
  PartFile(const formats::ModelFile& file, const Part& part) : file_(file) {
    const model::Match block{.block = std::to_string(part.block), .expert = {}};
    for (const TensorName& row : family_of(part).tensors) {
      const TensorView* tensor = file.find(model::fill_name(row.name, block));
      if (tensor != nullptr) tensors_.push_back(*tensor);
    }
  }
  const formats::FileInfo& info() const override { return file_.info(); }
  std::span<const formats::MetaEntry> metadata() const override { return file_.metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override { return file_.meta(key); }
  const TensorView* find(std::string_view name) const override { return file_.find(name); }
  Result<void> check_intact() const override { return file_.check_intact(); }
  uint64_t copy_bytes() const override { return file_.copy_bytes(); }
  Result<void> make_copy(std::span<const std::byte> part) const override { return file_.make_copy(part); }
  void has_read(std::span<const std::byte> part) const override { file_.has_read(part); }

 private:
  const formats::ModelFile& file_;
  std::vector<TensorView> tensors_;
};

std::vector<Part> models_of(const ResamplerSpec& spec) {
  std::vector<Part> parts;
  for (int32_t block = 0; block < spec.n_blocks; ++block) {
    for (const bool is_own : {false, true}) parts.push_back({block, is_own, block + 1 == spec.n_blocks});
  }
  return parts;
}

bool is_block(std::string_view number, int32_t n_blocks) {
  int32_t block = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), block);
  return read.ec == std::errc() && block >= 0 && block < n_blocks;
}

int32_t kv_blocks_of(int32_t n_rows) {
  return (n_rows + backend::kBlockTokens - 1) / backend::kBlockTokens;
}

// Rows that begin with vectors, behind so many of the same sequence; those of the tile in order, the own ones seeing
// one another.
backend::RowsView step(model::Model& model, std::span<const float> vectors, int32_t n_past, backend::Backend& backend,
                       backend::KvStore& kv) {
  const auto n = static_cast<int32_t>(vectors.size() / static_cast<size_t>(model.spec().dim));
  std::vector<int32_t> places(static_cast<size_t>(n)), positions(places.size());
  std::iota(places.begin(), places.end(), 0);
  std::iota(positions.begin(), positions.end(), n_past);
  const std::vector<TokenId> tokens(places.size(), 0);
  std::vector<BlockId> blocks(static_cast<size_t>(kv_blocks_of(n_past + n)));
  std::iota(blocks.begin(), blocks.end(), 0);
  const backend::SeqSlice seqs[] = {{.first_row = 0, .n_rows = n, .n_past = n_past}};
  const backend::VisibleGroup groups[] = {{0, n}};
  backend::StepBatch batch{.tokens = tokens,
                           .positions = positions,
                           .seqs = seqs,
                           .block_table = blocks,
                           .max_blocks = static_cast<int32_t>(blocks.size()),
                           .vector_rows = places,
                           .vectors = vectors};
  if (n_past > 0) batch.groups = groups;
  backend.read_logits(model.launch_blocks(0, 1, batch, kv));
  return model.all_rows(n);
}

}  // namespace

Result<std::unique_ptr<Resampler>> Resampler::load(const formats::ModelFile& file, const ResamplerSpec& spec,
                                                   backend::Backend& backend) {
  auto loaded = std::make_unique<Resampler>();
  loaded->spec_ = spec;
  CANDOR_ASSIGN(loaded->queries_, read_matrix(file, kQueries, spec.n_rows, spec.dim));
  loaded->blocks_.resize(static_cast<size_t>(spec.n_blocks));
  for (const Part& part : models_of(spec)) {
    Block& block = loaded->blocks_[static_cast<size_t>(part.block)];
    std::unique_ptr<model::Model>& to = part.is_own ? block.own : block.tile;
    CANDOR_ASSIGN(to, model::Model::load_part(PartFile(file, part), family_of(part), arch_of(spec, part), backend));
  }
  loaded->blocks_.back().own->keep_rows();
  return loaded;
}

Result<uint64_t> Resampler::planned_bytes(const formats::ModelFile& file, const ResamplerSpec& spec, int32_t n_rows,
                                          const backend::Backend& backend) {
  const model::ArchSpec own = arch_of(spec, {.is_own = true});
  uint64_t total = static_cast<uint64_t>(spec.n_rows) * static_cast<uint64_t>(spec.dim) * sizeof(float);
  total += static_cast<uint64_t>(backend.kv_block_bytes(model::kv_layout(own, kResamplerKv))) *
           static_cast<uint64_t>(kv_blocks_of(n_rows + spec.n_rows));
  for (const Part& part : models_of(spec)) {
    CANDOR_ASSIGN(const uint64_t n_bytes,
                  model::planned_part_bytes(PartFile(file, part), family_of(part), arch_of(spec, part), backend));
    total += n_bytes;
  }
  return total;
}

backend::ArenaLayout Resampler::with_arena(const ResamplerSpec& spec, int32_t n_rows, backend::ArenaLayout layout) {
  const int32_t n_most = std::max(n_rows, spec.n_rows);
  const backend::ArenaLayout own =
      model::arena_layout(arch_of(spec, {.is_own = true, .is_last = true}), n_most, 1, n_rows + spec.n_rows);
  for (size_t slot = 0; slot < own.slot_cols.size(); ++slot) {
    layout.slot_cols[slot] = std::max(layout.slot_cols[slot], own.slot_cols[slot]);
  }
  layout.max_rows = std::max(layout.max_rows, n_most);
  layout.max_input_cols = std::max(layout.max_input_cols, own.max_input_cols);
  layout.max_positions = std::max(layout.max_positions, own.max_positions);
  return layout;
}

bool Resampler::reads(const ResamplerSpec& spec, std::string_view tensor) {
  if (spec.n_rows == 0) return false;
  if (tensor == kQueries || tensor == kLastNorm) return true;
  for (const TensorName& row : family_of({.is_own = true}).tensors) {
    if (const auto match = model::match_name(row.name, tensor)) return is_block(match->block, spec.n_blocks);
  }
  const auto match = model::match_name(kTileTensors[0].name, tensor);
  return match && is_block(match->block, spec.n_blocks);
}

Result<backend::RowsView> Resampler::run(backend::RowsView rows, backend::Backend& backend) {
  const std::vector<float> tile(rows.data,
                                rows.data + static_cast<size_t>(rows.n_rows) * static_cast<size_t>(rows.n_cols));
  const int32_t n_tile = rows.n_rows;
  const int32_t n_blocks = kv_blocks_of(n_tile + spec_.n_rows);
  if (kv_ == nullptr || n_blocks > kv_->n_blocks()) {
    CANDOR_ASSIGN(kv_, backend.make_kv(blocks_.front().own->kv_layout(kResamplerKv), {n_blocks}));
  }
  std::vector<float> own = queries_;
  backend::RowsView seen;
  for (const Block& block : blocks_) {
    step(*block.tile, tile, 0, backend, *kv_);
    seen = step(*block.own, own, n_tile, backend, *kv_);
    own.assign(seen.data, seen.data + own.size());
  }
  return seen;
}

size_t Resampler::n_bytes() const {
  size_t total = queries_.size() * sizeof(float) + (kv_ == nullptr ? 0 : kv_->n_bytes());
  for (const Block& block : blocks_) total += block.tile->weight_bytes() + block.own->weight_bytes();
  return total;
}

}  // namespace candor::vision
