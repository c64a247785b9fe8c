#include "vision/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "backend/step_batch.h"
#include "model/families/families.h"
#include "model/fingerprint.h"
#include "vision/families.h"
#include "vision/families/common.h"
#include "vision/grid_tables.h"
#include "vision/row_grids.h"
#include "vision/tile_order.h"

namespace candor::vision {
namespace {

// Keys and values stay as they are: a tile's are needed once.
constexpr KvType kKvType = KvType::kF32;
// Of a tile, that there is room for at once; larger ones make more.
constexpr int32_t kUsualPatches = 4096;

int32_t n_blocks_of(int32_t n_patches) {
  return (n_patches + backend::kBlockTokens - 1) / backend::kBlockTokens;
}

int32_t usual_rows(const VisionSpec& spec) {
  return spec.n_lead_rows + std::min(spec.max_patches, kUsualPatches);
}

std::vector<const RowLayersSpec*> layers_of(const VisionSpec& spec) {
  std::vector<const RowLayersSpec*> all = {&spec.entry, &spec.projector};
  for (const DeepTap& tap : spec.taps) all.push_back(&tap.projector);
  return all;
}

uint64_t position_bytes(const VisionSpec& spec) {
  return static_cast<uint64_t>(n_table_rows(spec.positions)) * static_cast<uint64_t>(spec.tower.dim) * sizeof(float);
}

model::Family tower_of(const VisionSpec& spec) {
  return tower_family(spec.tower.has_final_norm);
}

// For so many rows of patches and what comes before them.
backend::ArenaLayout arena_of(const VisionSpec& spec, int32_t n_rows) {
  backend::ArenaLayout all = model::arena_layout(spec.tower, n_rows, 1, n_rows);
  for (const RowLayersSpec* layers : layers_of(spec)) {
    const backend::ArenaLayout own = RowLayers::arena_layout(*layers, n_rows);
    for (size_t slot = 0; slot < own.slot_cols.size(); ++slot) {
      all.slot_cols[slot] = std::max(all.slot_cols[slot], own.slot_cols[slot]);
    }
    all.max_input_cols = std::max(all.max_input_cols, own.max_input_cols);
    all.max_positions = std::max(all.max_positions, own.max_positions);
  }
  return spec.resampler.n_rows == 0 ? all : Resampler::with_arena(spec.resampler, n_rows, std::move(all));
}

// Rows of a step that see their own part alone: each a sequence with blocks of its own.
struct Parts {
  std::vector<backend::SeqSlice> seqs;
  std::vector<backend::VisibleGroup> groups;
  std::vector<BlockId> blocks;
  int32_t max_blocks = 0;
};

Parts parts_of(std::span<const int32_t> borders) {
  Parts parts;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const int32_t n = borders[i + 1] - borders[i];
    parts.seqs.push_back({.first_row = borders[i], .n_rows = n});
    parts.groups.push_back({borders[i], n});
    parts.max_blocks = std::max(parts.max_blocks, n_blocks_of(n));
  }
  BlockId next = 0;
  for (const backend::SeqSlice& seq : parts.seqs) {
    for (int32_t i = 0; i < parts.max_blocks; ++i)
      parts.blocks.push_back(i < n_blocks_of(seq.n_rows) ? next++ : kNoBlock);
  }
  return parts;
}
Parts parts_of(std::initializer_list<int32_t> borders) {
  return parts_of(std::span(borders.begin(), borders.size()));
}

bool sees_whole(const VisionSpec& spec, int32_t block) {
  return spec.windows.side == 0 || spec.windows.is_whole[static_cast<size_t>(block)];
}

bool is_tap(const VisionSpec& spec, int32_t block) {
  return std::ranges::any_of(spec.taps, [block](const DeepTap& tap) { return tap.block == block; });
}

// Blocks from `first` on that one step runs: they see alike, and nothing is read between them.
int32_t end_of_run(const VisionSpec& spec, int32_t first) {
  const auto n_blocks = static_cast<int32_t>(spec.tower.blocks.size());
  int32_t end = first + 1;
  while (end < n_blocks && sees_whole(spec, end) == sees_whole(spec, first) && !is_tap(spec, end - 1)) ++end;
  return end;
}

// K/V blocks of a tile, whole or in windows.
int32_t kv_blocks_of(const VisionSpec& spec, const image::Tile& tile) {
  const Parts windows = parts_of(order_of(tile, spec.windows.side).borders);
  const auto n_windows =
      static_cast<int32_t>(std::ranges::count_if(windows.blocks, [](BlockId id) { return id != kNoBlock; }));
  return std::max(n_windows, n_blocks_of(spec.n_lead_rows + tile.rows * tile.cols));
}

bool is_of_blocks(const TensorView& tensor) {
  return tensor.name.starts_with("v.blk.") || tensor.name.starts_with("v.post_ln.");
}

bool is_setting(const VisionSpec& spec, std::string_view name) {
  return std::ranges::find(spec.settings, name) != spec.settings.end();
}

// The tensors of the tower's blocks alone.
class BlocksOf final : public formats::ModelFile {
 public:
  BlocksOf(const formats::ModelFile& file, const VisionSpec& spec) : file_(file) {
    for (const TensorView& tensor : file.tensors()) {
      if (is_of_blocks(tensor) && !is_setting(spec, tensor.name)) tensors_.push_back(tensor);
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

// Tensors that nobody reads would change what comes out.
Result<void> refuse_unread(const formats::ModelFile& file, const VisionSpec& spec) {
  const auto is_read = [&](const TensorView& tensor) {
    const std::string_view own[] = {spec.positions.table, spec.standard.shift, spec.standard.gain, spec.newline};
    if (is_of_blocks(tensor) || std::ranges::find(own, tensor.name) != std::end(own)) return true;
    if (Resampler::reads(spec.resampler, tensor.name)) return true;
    for (const RowLayersSpec* layers : layers_of(spec)) {
      for (const RowLayer& layer : layers->layers) {
        if (tensor.name == layer.weight || tensor.name == layer.bias || tensor.name == layer.up) return true;
      }
    }
    return false;
  };
  const auto odd = std::ranges::find_if_not(file.tensors(), is_read);
  if (odd == file.tensors().end()) return {};
  return fail(ErrorKind::kUnsupported, fmt::format("tensor \"{}\" {} has no place in a tower of {}", odd->name,
                                                   to_string(odd->shape), spec.family));
}

}  // namespace

Result<VisionSpec> read_vision(const formats::ModelFile& file, const model::ArchSpec& text) {
  CANDOR_ASSIGN(const VisionFamily* family, family_of(file));
  CANDOR_ASSIGN(VisionSpec spec, family->read(file));
  const auto sees_groups = [](const model::BlockSpec& block) { return block.attn.sees_groups; };
  if (std::ranges::none_of(text.blocks, sees_groups)) spec.prompt.is_seen_whole = false;
  CANDOR_TRY(refuse_unread(file, spec));
  for (const RowLayersSpec* layers : layers_of(spec)) {
    if (layers == &spec.entry || layers->n_out() == text.dim) continue;
    return fail(ErrorKind::kInvalidInput,
                fmt::format("the images' rows are {} wide, and the model's {}: the tower is another model's",
                            layers->n_out(), text.dim));
  }
  if (most_rows(spec) < 1) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{} x {} rows become one, and a tile has {}: an image has no row",
                                                      spec.regroup.n, spec.regroup.n, spec.max_patches));
  }
  if (spec.n_deep() == text.n_deep) return spec;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("images enter behind {} blocks of the model, and the tower is for {}: "
                          "it is another model's",
                          text.n_deep, spec.n_deep()));
}

Result<uint64_t> planned_bytes(const formats::ModelFile& file, const VisionSpec& spec,
                               const backend::Backend& backend) {
  CANDOR_ASSIGN(uint64_t total, model::planned_part_bytes(BlocksOf(file, spec), tower_of(spec), spec.tower, backend));
  for (const RowLayersSpec* layers : layers_of(spec)) {
    CANDOR_ASSIGN(const uint64_t n_bytes, RowLayers::planned_bytes(file, *layers, backend));
    total += n_bytes;
  }
  if (spec.resampler.n_rows > 0) {
    CANDOR_ASSIGN(const uint64_t n_bytes, Resampler::planned_bytes(file, spec.resampler, usual_rows(spec), backend));
    total += n_bytes;
  }
  const auto block = static_cast<uint64_t>(backend.kv_block_bytes(model::kv_layout(spec.tower, kKvType)));
  const int32_t n_rows = usual_rows(spec);
  return total + file.copy_bytes() + position_bytes(spec) + block * static_cast<uint64_t>(n_blocks_of(n_rows)) +
         backend.arena_bytes(arena_of(spec, n_rows));
}

Result<uint64_t> fingerprint_of(const formats::ModelFile& file, const VisionSpec& spec) {
  return model::Contents(file).fingerprint(spec.tower);
}

Encoder::Encoder(VisionSpec spec, std::unique_ptr<backend::Backend> backend)
    : spec_(std::move(spec)), backend_(std::move(backend)) {}
Encoder::~Encoder() = default;

Result<std::unique_ptr<Encoder>> Encoder::load(const formats::ModelFile& file, VisionSpec spec,
                                               std::unique_ptr<backend::Backend> backend) {
  std::unique_ptr<Encoder> encoder(new Encoder(std::move(spec), std::move(backend)));
  const VisionSpec& what = encoder->spec_;
  backend::Backend& where = *encoder->backend_;
  CANDOR_ASSIGN(encoder->tower_, model::Model::load_part(BlocksOf(file, what), tower_of(what), what.tower, where));
  CANDOR_ASSIGN(encoder->entry_, RowLayers::load(file, what.entry, where));
  CANDOR_ASSIGN(encoder->projector_, RowLayers::load(file, what.projector, where));
  for (const DeepTap& tap : what.taps) {
    CANDOR_ASSIGN(RowLayers layers, RowLayers::load(file, tap.projector, where));
    encoder->taps_.push_back(std::move(layers));
  }
  if (what.resampler.n_rows > 0) {
    CANDOR_ASSIGN(encoder->resampler_, Resampler::load(file, what.resampler, where));
  }
  if (!what.newline.empty()) {
    CANDOR_ASSIGN(encoder->newline_, read_vector(file, what.newline, what.projector.n_out()));
  }
  CANDOR_ASSIGN(encoder->positions_, read_table(file, what.positions, what.tower.dim));
  CANDOR_ASSIGN(encoder->shift_, read_vector(file, what.standard.shift, what.tower.dim));
  CANDOR_ASSIGN(encoder->gain_, read_vector(file, what.standard.gain, what.tower.dim));
  encoder->tower_->keep_rows();
  const int32_t n_rows = usual_rows(what);
  CANDOR_TRY(encoder->make_room(n_rows, n_blocks_of(n_rows)));
  return encoder;
}

Result<void> Encoder::make_room(int32_t n_patches, int32_t n_blocks) {
  if (kv_ == nullptr || n_blocks > kv_->n_blocks()) {
    CANDOR_ASSIGN(kv_, backend_->make_kv(tower_->kv_layout(kKvType), {n_blocks}));
  }
  if (n_patches <= n_patches_) return {};
  CANDOR_TRY(backend_->reserve_arena(arena_of(spec_, n_patches)));
  n_patches_ = n_patches;
  return {};
}

size_t Encoder::n_bytes() const {
  size_t total = tower_->weight_bytes() + entry_.weight_bytes() + projector_.weight_bytes() + kv_->n_bytes() +
                 backend_->arena_bytes(arena_of(spec_, n_patches_));
  for (const std::vector<float>* own : {&positions_, &shift_, &gain_, &newline_}) total += own->size() * sizeof(float);
  for (const RowLayers& tap : taps_) total += tap.weight_bytes();
  if (resampler_ != nullptr) total += resampler_->n_bytes();
  return total;
}

std::vector<float> Encoder::own_positions(const image::Tile& tile) const {
  const int32_t side = spec_.positions.side;
  if (spec_.positions.kind == PositionKind::kByAxis) {
    return sum_of_axes(positions_, side, tile.rows, tile.cols);
  }
  if (spec_.positions.kind == PositionKind::kNearest) {
    return nearest_positions(positions_, side, tile.rows, tile.cols);
  }
  if (spec_.positions.kind == PositionKind::kFiltered) return resize_positions(positions_, side, tile.rows, tile.cols);
  return stretch(positions_, side, tile.rows, tile.cols, spec_.tower.dim);
}

void Encoder::standardise(std::span<float> rows) const {
  const Standard& standard = spec_.standard;
  const auto dim = static_cast<size_t>(spec_.tower.dim);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (standard.factor != 1.0f) rows[i] *= standard.factor;
    if (!shift_.empty()) rows[i] -= shift_[i % dim];
    if (!gain_.empty()) rows[i] *= gain_[i % dim];
  }
}

std::vector<float> Encoder::enter(const image::Tile& tile, std::span<const int32_t> order) {
  const int32_t n_lead = spec_.n_lead_rows;
  const int32_t n = n_lead + tile.rows * tile.cols;
  std::vector<float> inputs(static_cast<size_t>(n_lead) * static_cast<size_t>(spec_.entry.n_in));
  inputs.insert(inputs.end(), tile.patches.begin(), tile.patches.end());
  const backend::RowsView entered = entry_.run(inputs, n, *backend_, *kv_);
  std::vector<float> added;
  if (!positions_.empty()) added = own_positions(tile);
  std::vector<float> vectors;
  vectors.reserve(static_cast<size_t>(n) * static_cast<size_t>(entered.n_cols));
  for (int32_t i = 0; i < n_lead; ++i) vectors.insert(vectors.end(), entered.row(i).begin(), entered.row(i).end());
  for (const int32_t patch : order) {
    const std::span<const float> row = entered.row(n_lead + patch);
    const size_t from = static_cast<size_t>(patch) * row.size();
    for (size_t d = 0; d < row.size(); ++d) vectors.push_back(added.empty() ? row[d] : row[d] + added[from + d]);
  }
  return vectors;
}

std::vector<std::vector<float>> Encoder::run_tower(const image::Tile& tile) {
  const int32_t n_lead = spec_.n_lead_rows;
  const int32_t n = n_lead + tile.rows * tile.cols;
  const TileOrder order = order_of(tile, spec_.windows.side);
  const std::vector<float> vectors = enter(tile, order.patches);
  std::vector<int32_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  std::vector<int32_t> axes(2 * static_cast<size_t>(n_lead));
  for (const int32_t patch : order.patches) {
    axes.insert(axes.end(), {spec_.first_axis + patch / tile.cols, spec_.first_axis + patch % tile.cols});
  }
  const std::vector<TokenId> tokens(places.size(), 0);
  const Parts whole = parts_of({0, n});
  const Parts windows = parts_of(order.borders);
  const auto batch_of = [&](const Parts& parts) -> backend::StepBatch {
    return {.tokens = tokens,
            .positions = places,
            .seqs = parts.seqs,
            .block_table = parts.blocks,
            .max_blocks = parts.max_blocks,
            .groups = parts.groups,
            .vector_rows = places,
            .vectors = vectors,
            .axes = axes,
            .n_axes = 2};
  };
  std::vector<std::vector<float>> all;
  const auto keep = [&](backend::RowsView rows) {
    std::vector<float>& kept = all.emplace_back(order.patches.size() * static_cast<size_t>(rows.n_cols));
    int32_t row = n_lead;
    for (const int32_t patch : order.patches) {
      std::ranges::copy(rows.row(row++), kept.begin() + int64_t{patch} * rows.n_cols);
    }
  };
  const auto n_blocks = static_cast<int32_t>(spec_.tower.blocks.size());
  for (int32_t first = 0; first < n_blocks;) {
    const int32_t end = end_of_run(spec_, first);
    const bool is_whole = sees_whole(spec_, first);
    backend_->read_logits(tower_->launch_blocks(first, end, batch_of(is_whole ? whole : windows), *kv_));
    if (is_tap(spec_, end - 1)) keep(tower_->stream_rows(n));
    first = end;
  }
  keep(tower_->all_rows(n));
  return all;
}

Result<void> Encoder::encode(const image::Tile& tile, EncodedImage& image) {
  CANDOR_TRY(check_positions(spec_.positions, tile.rows, tile.cols));
  CANDOR_TRY(make_room(spec_.n_lead_rows + tile.rows * tile.cols, kv_blocks_of(spec_, tile)));
  const std::vector<std::vector<float>> behind = run_tower(tile);
  const int32_t n = rows_of(spec_, tile);
  const auto width = static_cast<size_t>(spec_.projector.n_out());
  const size_t stride = width * (1 + spec_.taps.size());
  const size_t begin = image.rows.size();
  image.rows.resize(begin + static_cast<size_t>(n) * stride);
  for (size_t part = 0; part < behind.size(); ++part) {
    const bool is_last = part + 1 == behind.size();
    std::vector<float> grouped = regroup(spec_.regroup, behind[part], tile.rows, tile.cols, spec_.tower.dim);
    standardise(grouped);
    RowLayers& layers = is_last ? projector_ : taps_[part];
    const auto n_grouped =
        static_cast<int32_t>(grouped.size() / static_cast<size_t>(spec_.regroup.width(spec_.tower.dim)));
    backend::RowsView rows = layers.run(grouped, n_grouped, *backend_, *kv_);
    if (resampler_ != nullptr) {
      CANDOR_ASSIGN(rows, resampler_->run(rows, *backend_));
    }
    float* to = image.rows.data() + begin + (is_last ? 0 : width * (part + 1));
    for (int32_t i = 0; i < n; ++i, to += stride) std::ranges::copy(rows.row(i), to);
  }
  image.n_rows += n;
  const auto added = std::span(image.rows).subspan(begin);
  if (std::ranges::all_of(added, [](float x) { return std::isfinite(x); })) return {};
  return fail(ErrorKind::kInvalidInput, "the tower's numbers are not finite: its weights are damaged, or too coarse");
}

void Encoder::finish(const image::Prepared& prepared, EncodedImage& image) const {
  if (newline_.empty()) return;
  const size_t width = newline_.size();
  std::vector<float> rows;
  const std::vector<int32_t> lines = lines_of(prepared, prepared.tiles.front().rows);
  rows.reserve(lines.size() * width);
  for (const int32_t line : lines) {
    const std::span<const float> row =
        line == kNewline ? std::span<const float>(newline_)
                         : std::span<const float>(image.rows).subspan(static_cast<size_t>(line) * width, width);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  image.rows = std::move(rows);
  image.n_rows = static_cast<int32_t>(lines.size());
}

std::vector<int32_t> rows_of_tiles(const VisionSpec& spec, const image::Prepared& prepared) {
  if (!spec.newline.empty()) {
    return {static_cast<int32_t>(lines_of(prepared, prepared.tiles.front().rows).size())};
  }
  std::vector<int32_t> rows;
  for (const image::Tile& tile : prepared.tiles) rows.push_back(rows_of(spec, tile));
  return rows;
}

int32_t most_rows(const VisionSpec& spec) {
  if (spec.resampler.n_rows > 0) return spec.resampler.n_rows;
  return spec.regroup.kind == RegroupKind::kNone ? spec.max_patches
                                                 : spec.max_patches / (spec.regroup.n * spec.regroup.n);
}

int32_t projected_rows(const VisionSpec& spec, const image::Tile& tile) {
  return spec.regroup.kind == RegroupKind::kNone ? tile.rows * tile.cols : spec.regroup.n_rows(tile.rows, tile.cols);
}

int32_t rows_of(const VisionSpec& spec, const image::Tile& tile) {
  return spec.resampler.n_rows > 0 ? spec.resampler.n_rows : projected_rows(spec, tile);
}

}  // namespace candor::vision
