#include "merge/merged_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/changed_file.h"
#include "formats/quote.h"
#include "formats/tensor_copies.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_file.h"
#include "model/families/families.h"
#include "model/model.h"
#include "platform/thread_pool.h"
#include "quantize/search.h"

namespace candor::merge {
namespace {

using model::AdapterPart;
using model::Binding;
using model::TensorRole;

// Rows of a tensor that one part changes.
struct Piece {
  int64_t first_row = 0;
  int64_t n_rows = 0;
  const AdapterPart* part = nullptr;
  std::span<const float> lengths{};  // row_lengths()
};

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_rows(tensor, values.data());
  return values;
}

// A piece whose thin matrices are in memory.
class RowChange {
 public:
  RowChange(const Piece& piece, float scale) : piece_(piece), scale_(scale) {
    if (piece.part->is_whole()) return;
    down_ = decoded(piece.part->down);
    up_ = decoded(piece.part->up);
    rank_ = static_cast<size_t>(piece.part->rank());
  }

  int64_t first_row() const { return piece_.first_row; }
  bool holds(int64_t row) const { return row >= piece_.first_row && row < piece_.first_row + piece_.n_rows; }

  // row: of the tensor. room: as long as values.
  void apply(int64_t row, std::span<float> values, std::span<float> room) const {
    const auto at = static_cast<size_t>(row - piece_.first_row);
    if (piece_.part->is_whole()) {
      decode_row(piece_.part->up, static_cast<int64_t>(at), room.data());
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = scale_ == 1.0f ? room[i] : values[i] + scale_ * (room[i] - values[i]);
      }
      return;
    }
    float factor = scale_ * piece_.part->scale;
    if (!piece_.lengths.empty()) {
      const float gain = piece_.part->magnitudes[at] / piece_.lengths[at];
      for (float& x : values) x += scale_ * (gain - 1.0f) * x;
      factor *= gain;
    }
    std::ranges::fill(room, 0.0f);
    for (size_t k = 0; k < rank_; ++k) add_rank(at, k, room);
    for (size_t i = 0; i < values.size(); ++i) values[i] += factor * room[i];
  }

 private:
  // Of embeddings the row is one of `down`, and columns are rows of `up`.
  void add_rank(size_t row, size_t k, std::span<float> sum) const {
    if (piece_.part->role == TensorRole::kEmbedding) {
      const float weight = down_[row * rank_ + k];
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * up_[i * rank_ + k];
      return;
    }
    const float weight = up_[row * rank_ + k];
    const float* from = down_.data() + k * sum.size();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * from[i];
  }

  const Piece& piece_;
  float scale_;
  size_t rank_ = 0;
  std::vector<float> down_, up_;
};

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

class MergedModel final : public formats::ChangedFile {
 public:
  MergedModel(std::unique_ptr<formats::ModelFile> base, const MergeOptions& options)
      : ChangedFile(std::move(base)), options_(options) {}

  Result<void> check_intact() const override {
    CANDOR_TRY(ChangedFile::check_intact());
    return adapter_->check_intact();
  }
  Result<void> plan(const std::filesystem::path& adapter) {
    CANDOR_ASSIGN(spec_, model::read_arch(base()));
    CANDOR_ASSIGN(adapter_, model::AdapterFile::open(adapter, spec_, base()));
    CANDOR_ASSIGN(lengths_, model::row_lengths(*adapter_, spec_, base()));
    CANDOR_ASSIGN(pool_, platform::ThreadPool::start({.n_threads = options_.n_threads, .spin = false}));
    CANDOR_ASSIGN(const auto bindings, model::bind_tensors(base(), *model::find_family(spec_.family), spec_));
    CANDOR_TRY(place_pieces(bindings));
    for (size_t i = 0; i < pieces_.size(); ++i)
      CANDOR_TRY(add(base().tensors()[i].name, base().tensors()[i], pieces_[i]));
    CANDOR_TRY(untie_head(bindings));
    sort();
    return {};
  }

 private:
  // Of each of the base's tensors, in the order of their rows.
  Result<void> place_pieces(const std::vector<Binding>& bindings) {
    const std::span<const TensorView> tensors = base().tensors();
    pieces_.resize(tensors.size());
    for (size_t i = 0; i < adapter_->parts().size(); ++i) {
      const AdapterPart& part = adapter_->parts()[i];
      const TensorView& view = model::binding_of(part, spec_, bindings).view;
      const bool is_tied_head = part.role == TensorRole::kHead && spec_.head.tied;
      if (is_tied_head) {
        head_pieces_.push_back({0, view.shape.n_rows(), &part, lengths_[i]});
        continue;
      }
      const size_t at = tensor_of(view);
      const auto first = static_cast<int64_t>(static_cast<size_t>(view.data - tensors[at].data) / view.row_bytes());
      pieces_[at].push_back({first, view.shape.n_rows(), &part, lengths_[i]});
    }
    for (std::vector<Piece>& pieces : pieces_) std::ranges::sort(pieces, {}, &Piece::first_row);
    return {};
  }

  // The tensor that a binding's view lies in.
  size_t tensor_of(const TensorView& view) const {
    const auto tensor = std::ranges::find_if(base().tensors(), [&](const TensorView& each) {
      return !std::less<>()(view.data, each.data) && std::less<>()(view.data, each.data + each.n_bytes);
    });
    CANDOR_CHECK(tensor != base().tensors().end());
    return static_cast<size_t>(tensor - base().tensors().begin());
  }

  Result<void> untie_head(const std::vector<Binding>& bindings) {
    const auto changes_embedding = [](const AdapterPart& part) { return part.role == TensorRole::kEmbedding; };
    if (!spec_.head.tied) return {};
    if (head_pieces_.empty() && std::ranges::none_of(adapter_->parts(), changes_embedding)) return {};
    const model::Family& family = *model::find_family(spec_.family);
    const auto row = std::ranges::find(family.tensors, TensorRole::kHead, &model::TensorName::role);
    if (row == family.tensors.end()) {
      return fail(ErrorKind::kUnsupported,
                  fmt::format("the model's head is its embedding, and {} models have no other: an adapter that changes "
                              "one of the two can be used beside the model alone",
                              spec_.family));
    }
    const auto embedding = std::ranges::find(bindings, TensorRole::kEmbedding, &Binding::role);
    return add(row->name, embedding->view, head_pieces_, true);
  }

  // source: the base's, with the pieces changed.
  Result<void> add(std::string_view name, const TensorView& source, const std::vector<Piece>& pieces,
                   bool is_new = false) {
    if (pieces.empty() && !is_new) return tensors_.push_back(source), Result<void>{};
    const DType dtype = type_of(source);
    TensorView view{name, dtype, source.shape, nullptr, *tensor_bytes_of(dtype, source.shape)};
    formats::CopySource copy{[this, source, dtype, &pieces](std::byte* to) { return write(source, dtype, pieces, to); },
                             {source.bytes()}};
    CANDOR_ASSIGN(view.data, copies_.add(view.n_bytes, name, std::move(copy)));
    tensors_.push_back(view);
    return {};
  }

  DType type_of(const TensorView& source) const {
    if (options_.types == MergedTypes::kKept) return source.dtype;
    return options_.types == MergedTypes::kQuantisedAsF32 && is_float(source.dtype) ? source.dtype : DType::kF32;
  }

  Result<void> write(const TensorView& source, DType dtype, const std::vector<Piece>& pieces, std::byte* to) const {
    CANDOR_TRY(base().make_copy(source.bytes()));
    std::vector<RowChange> changes;
    for (const Piece& piece : pieces) changes.emplace_back(piece, static_cast<float>(options_.scale));
    const auto n_cols = static_cast<size_t>(source.shape.row_elements());
    std::vector<std::vector<float>> room(static_cast<size_t>(pool_->n_threads()), std::vector<float>(2 * n_cols));
    std::atomic<int64_t> bad_row{-1};
    const size_t stride = row_bytes(dtype_info(dtype), source.shape.row_elements());
    const auto rows = [&](platform::UnitRange range) {
      const std::span<float> all = room[static_cast<size_t>(range.thread)];
      for (int64_t row = range.begin; row < range.end; ++row) {
        const std::span<float> values = all.first(n_cols);
        decode_row(source, row, values.data());
        change(changes, row, values, all.subspan(n_cols));
        if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) bad_row = row;
        quantize::encode_searched(dtype, values.data(), nullptr, source.shape.row_elements(),
                                  to + static_cast<size_t>(row) * stride);
      }
    };
    pool_->parallel_for({.n_units = source.shape.n_rows(), .grain = 1, .unit_cost = 100 * source.shape.row_elements()},
                        rows);
    base().has_read(source.bytes());
    CANDOR_TRY(check_intact());
    if (bad_row < 0) return {};
    return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: row {} of the sum holds NaN or infinity",
                                                      formats::in_quotes(source.name), bad_row.load()));
  }

  static void change(const std::vector<RowChange>& changes, int64_t row, std::span<float> values,
                     std::span<float> room) {
    const auto after = std::ranges::upper_bound(changes, row, {}, &RowChange::first_row);
    if (after != changes.begin() && std::prev(after)->holds(row)) std::prev(after)->apply(row, values, room);
  }

  const MergeOptions options_;
  model::ArchSpec spec_;
  std::unique_ptr<model::AdapterFile> adapter_;
  std::vector<std::vector<float>> lengths_;
  std::unique_ptr<platform::ThreadPool> pool_;
  std::vector<std::vector<Piece>> pieces_;  // by the base's tensors
  std::vector<Piece> head_pieces_;          // of a head that was the embedding
};

}  // namespace

Result<std::unique_ptr<formats::ModelFile>> merge_adapter(std::unique_ptr<formats::ModelFile> base,
                                                          const std::filesystem::path& adapter,
                                                          const MergeOptions& options) {
  auto merged = std::make_unique<MergedModel>(std::move(base), options);
  CANDOR_TRY(merged->plan(adapter));
  return std::unique_ptr<formats::ModelFile>(std::move(merged));
}

}  // namespace candor::merge
