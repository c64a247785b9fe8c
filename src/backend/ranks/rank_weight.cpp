#include "backend/ranks/rank_weight.h"

#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::backend {
namespace {

bool is_looked_up(WeightRole role) {
  return role == WeightRole::kEmbedding || role == WeightRole::kEmbeddingAndLinear;
}

// Vectors are shared out by their elements.
int64_t outputs_of(const TensorView& tensor, WeightRole role) {
  return role == WeightRole::kVector ? tensor.shape.n_elements() : tensor.shape.n_rows();
}

TensorView piece_of(const TensorView& tensor, WeightRole role, const OutputShare& share) {
  TensorView piece = tensor;
  const size_t unit = role == WeightRole::kVector ? static_cast<size_t>(dtype_info(tensor.dtype).block_bytes)
                                                  : tensor.row_bytes();
  piece.shape.dims[0] = share.width();
  piece.data = tensor.data + static_cast<size_t>(share.begin) * unit;
  piece.n_bytes = static_cast<size_t>(share.width()) * unit;
  return piece;
}

std::vector<int32_t> head_bounds(const std::vector<HeadShare>& shares, int32_t unit) {
  std::vector<int32_t> bounds = {0};
  for (const HeadShare& share : shares) bounds.push_back((share.first_head + share.n_heads) * unit);
  return bounds;
}

}  // namespace

OutputShare RankUpload::share_of(int64_t n_outputs, const WeightSplit& split, int32_t rank) const {
  const auto at = static_cast<size_t>(rank);
  OutputShare share;
  if (split.kind == SplitKind::kKvHeads) {
    const auto unit = static_cast<int32_t>(n_outputs / split.heads.n_kv_heads);
    const HeadShare heads = share_heads(split.heads, size_)[at];
    return {heads.first_kv_head * unit, (heads.first_kv_head + heads.n_kv_heads) * unit};
  }
  if (split.kind == SplitKind::kQueryHeads) {
    share.bounds = head_bounds(share_heads(split.heads, size_), static_cast<int32_t>(n_outputs / split.heads.n_heads));
  } else {
    share.bounds = share_outputs(n_outputs, size_);
  }
  share.begin = share.bounds[at];
  share.end = share.bounds[at + 1];
  return share;
}

Result<std::unique_ptr<RankWeight>> RankUpload::upload(Backend& inner, const TensorView& tensor, WeightRole role,
                                                       const WeightSplit& split) const {
  auto weight = std::make_unique<RankWeight>();
  CANDOR_ASSIGN(weight->n_bytes_, n_bytes(tensor, role, split));
  weight->n_rows_ = role == WeightRole::kVector ? 1 : tensor.shape.n_rows();
  weight->n_cols_ = role == WeightRole::kVector ? tensor.shape.n_elements() : tensor.shape.row_elements();
  weight->dtype_ = tensor.dtype;
  if (is_looked_up(role)) {
    if (rank_ == 0) {
      CANDOR_ASSIGN(weight->rows_, inner.upload(tensor, WeightRole::kEmbedding));
    }
    if (role == WeightRole::kEmbedding) return weight;
    role = WeightRole::kLinear;
  }
  if (split.kind == SplitKind::kWhole) {
    CANDOR_ASSIGN(weight->part_, inner.upload(tensor, role));
    if (!split.is_read) return weight;
    weight->values_.resize(static_cast<size_t>(tensor.shape.n_elements()));
    decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), weight->values_.data());
    return weight;
  }
  weight->is_split_ = true;
  weight->goes_along_ = split.goes_along;
  weight->share_ = share_of(outputs_of(tensor, role), split, rank_);
  if (weight->share_.width() == 0) return weight;
  CANDOR_ASSIGN(weight->part_, inner.upload(piece_of(tensor, role, weight->share_), role));
  return weight;
}

Result<uint64_t> RankUpload::n_bytes(const TensorView& tensor, WeightRole role, const WeightSplit& split) const {
  uint64_t total = 0;
  if (is_looked_up(role)) {
    if (here_.front() == 0) {
      CANDOR_ASSIGN(total, inner_.upload_bytes(tensor, WeightRole::kEmbedding));
    }
    if (role == WeightRole::kEmbedding) return total;
    role = WeightRole::kLinear;
  }
  // What it refuses is refused as a whole, so that the message speaks of the file's own shape.
  CANDOR_ASSIGN(const uint64_t whole, inner_.upload_bytes(tensor, role));
  if (split.kind == SplitKind::kWhole) return total + whole * here_.size();
  for (const int32_t rank : here_) {
    const OutputShare share = share_of(outputs_of(tensor, role), split, rank);
    if (share.width() == 0) continue;
    CANDOR_ASSIGN(const uint64_t part, inner_.upload_bytes(piece_of(tensor, role, share), role));
    total += part;
  }
  return total;
}

}  // namespace candor::backend
