#include "model/adapter/part_list.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "formats/quote.h"
#include "model/hub/hub_names.h"
#include "model/role_traits.h"
#include "tensor/dtype.h"

namespace candor::model {

using formats::in_quotes;

TensorView rows_of(const TensorView& matrix, int64_t first, int64_t n) {
  TensorView rows = matrix;
  rows.shape.dims[0] = n;
  rows.data = matrix.data + static_cast<size_t>(first) * matrix.row_bytes();
  rows.n_bytes = static_cast<size_t>(n) * matrix.row_bytes();
  return rows;
}

TensorView matrix_of(const TensorView& stack, int64_t number) {
  TensorView one = stack;
  one.shape = {2, {stack.shape[1], stack.shape[2]}};
  one.n_bytes = stack.n_bytes / static_cast<size_t>(stack.shape[0]);
  one.data = stack.data + static_cast<size_t>(number) * one.n_bytes;
  return one;
}

Error PartList::refused(std::string_view name, std::string_view reason) const {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("adapter {}: {} {}", in_quotes(path_.string()), in_quotes(name), reason), "adapters");
}

namespace {

// The block that a name of the pattern is of; 0 outside of blocks.
std::optional<int32_t> layer_of(std::string_view pattern, std::string_view tensor) {
  const std::optional<Match> match = match_name(pattern, tensor);
  if (!match) return std::nullopt;
  int32_t layer = 0;
  std::from_chars(match->block.data(), match->block.data() + match->block.size(), layer);
  return layer;
}

bool is_product(TensorRole role) {
  using enum TensorRole;
  if (role == kEmbedding || role == kQkv || role == kGateUp || role == kConvIn || role == kSsmIn) return true;
  return traits_of(role).packing == backend::WeightRole::kLinear && role != kLayerProjection;
}

}  // namespace

Result<void> PartList::add(std::string_view tensor, std::optional<int32_t> expert, AdapterPart part) {
  for (const TensorName& row : family_.tensors) {
    const std::optional<int32_t> layer = layer_of(row.name, tensor);
    if (!layer) continue;
    if (static_cast<size_t>(*layer) >= spec_.blocks.size()) {
      return refused(part.name, fmt::format("is of block {}, and this model has {}: the adapter is for another model",
                                            *layer, spec_.blocks.size()));
    }
    if (!is_for(row.role, spec_.blocks[static_cast<size_t>(*layer)])) continue;
    if (is_by_head(row.role)) {
      return refused(part.name,
                     "belongs to keys and values that are never made out of their latent here, so nothing can "
                     "be added to it: merge the adapter into the model with other tools");
    }
    if (!is_product(row.role)) {
      return refused(part.name,
                     "is no matrix of a product: adapters change matrices, the embedding and the head alone");
    }
    part.layer = *layer;
    part.expert = expert.value_or(0);
    if (is_expert(row.role) != expert.has_value()) continue;
    return add_role(row.role, std::move(part));
  }
  return refused(part.name, fmt::format("is not in this {} model: the adapter is for another model", family_.name));
}

// Several matrices that the file has as one.
Result<void> PartList::split_rows(const AdapterPart& part, std::vector<std::pair<TensorRole, int64_t>> pieces) {
  int64_t first = 0;
  for (const auto& [role, n] : pieces) {
    AdapterPart piece = part;
    piece.up = rows_of(part.up, first, n);
    if (!part.magnitudes.empty()) {
      const auto begin = part.magnitudes.begin() + first;
      piece.magnitudes.assign(begin, begin + n);
    }
    CANDOR_TRY(add_role(role, std::move(piece)));
    first += n;
  }
  return {};
}

Result<void> PartList::add_role(TensorRole role, AdapterPart part) {
  part.role = role;
  CANDOR_TRY(check_shape(part));
  const auto extent = [&](Extent of) { return extent_of(of, spec_, part.layer); };
  using enum Extent;
  using enum TensorRole;
  if (role == kQkv) return split_rows(part, {{kQ, extent(kHeads)}, {kK, extent(kKvHeads)}, {kV, extent(kKvHeads)}});
  if (role == kGateUp) return split_rows(part, {{kGate, extent(kFfn)}, {kUp, extent(kFfn)}});
  if (role == kExpertGateUp) return split_rows(part, {{kExpertGate, extent(kFfn)}, {kExpertUp, extent(kFfn)}});
  if (role == kConvIn) {
    return split_rows(part, {{kConvB, extent(kDim)}, {kConvC, extent(kDim)}, {kConvX, extent(kDim)}});
  }
  if (role == kSsmIn) {
    return split_rows(
        part,
        {{kSsmGate, extent(kSsmWidth)}, {kSsmChannels, extent(kSsmChannelCount)}, {kSsmStep, extent(kSsmHeadCount)}});
  }
  if (!places_.emplace(role, part.layer, part.expert).second) {
    return refused(part.name, "belongs to a matrix that the adapter changes twice: expected once");
  }
  if (parts_.size() == kMaxAdapterParts) return refused(part.name, "is one matrix more than adapters may have");
  parts_.push_back(std::move(part));
  return {};
}

Result<void> PartList::check_shape(const AdapterPart& part) const {
  const bool is_table = part.role == TensorRole::kEmbedding;
  Shape expected = expected_shape(spec_, part.role, part.layer);
  const TensorView& up = part.up;
  const bool are_matrices = up.shape.n_dims == 2 && (part.is_whole() || part.down.shape.n_dims == 2);
  if (!are_matrices) {
    return refused(part.name, fmt::format("has shape {}; expected matrices", to_string(up.shape)));
  }
  if (part.is_whole()) {
    if (up.shape == expected) return {};
    return refused(part.name, fmt::format("has shape {}, and this model's has {}: the adapter is for another model",
                                          to_string(up.shape), to_string(expected)));
  }
  const int64_t rank = up.shape[1];
  const int64_t inputs = is_table ? part.down.shape[0] : part.down.shape[1];
  const int64_t other_rank = is_table ? part.down.shape[1] : part.down.shape[0];
  if (rank < 1 || rank > kMaxAdapterRank || rank != other_rank) {
    return refused(part.name, fmt::format("has matrices {} and {}; expected one rank from 1 to {} in both",
                                          to_string(part.down.shape), to_string(up.shape), kMaxAdapterRank));
  }
  if (is_table) std::swap(expected.dims[0], expected.dims[1]);
  if (up.shape[0] == expected[0] && inputs == expected[1]) return {};
  return refused(part.name,
                 fmt::format("is for {} inputs and {} outputs, and this model's has {} and {}: the adapter is "
                             "for another model",
                             inputs, up.shape[0], expected[1], expected[0]));
}

}  // namespace candor::model
