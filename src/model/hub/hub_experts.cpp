#include "model/hub/hub_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "formats/quote.h"
#include "model/hub/hub_rows.h"
#include "tensor/encode.h"
#include "tensor/quant/mxfp4.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using quant::BlockMXFP4;

constexpr size_t kGroupBytes = sizeof(BlockMXFP4::qs);

Error bad_shape(const TensorView& tensor, std::string_view expected) {
  return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: {} {}; expected {}", in_quotes(tensor.name),
                                                    dtype_info(tensor.dtype).name, to_string(tensor.shape), expected));
}

bool is_plain(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

size_t unit_of(DType dtype) {
  return static_cast<size_t>(dtype_info(dtype).block_bytes);
}

// Nibbles from pairs of neighbours to the two halves of a group, and back.
void to_halves(const uint8_t* pairs, uint8_t* halves) {
  const auto code = [&](int i) { return i % 2 == 0 ? pairs[i / 2] & 15 : pairs[i / 2] >> 4; };
  for (int j = 0; j < 16; ++j) halves[j] = static_cast<uint8_t>(code(j) | code(j + 16) << 4);
}
void to_pairs(const uint8_t* halves, uint8_t* pairs) {
  const auto code = [&](int i) { return i < 16 ? halves[i] & 15 : halves[i - 16] >> 4; };
  for (int j = 0; j < 16; ++j) pairs[j] = static_cast<uint8_t>(code(2 * j) | code(2 * j + 1) << 4);
}

// fn(row) for the rows of a part, of those of all experts one after another, ascending.
template <class Fn>
void for_part_rows(const Shape& shape, PartOrder order, int32_t part, Fn&& fn) {
  const int64_t n_out = shape[1];
  for (int64_t expert = 0; expert < shape[0]; ++expert) {
    for (int64_t i = 0; i < n_out / order.n_parts; ++i)
      fn(expert * n_out + order.first(part, n_out) + i * order.step());
  }
}

Result<void> split_biases(const TensorView& tensor, PartOrder order, const AddPart& add) {
  for (int32_t part = 0; part < order.n_parts; ++part) {
    const auto write = [tensor, order, part](std::byte* to) -> Result<void> {
      const size_t unit = unit_of(tensor.dtype);
      for_part_rows(tensor.shape, order, part, [&](int64_t row) {
        std::memcpy(to, tensor.data + static_cast<size_t>(row) * unit, unit);
        to += unit;
      });
      return {};
    };
    const Shape mine{2, {tensor.shape[0], tensor.shape[1] / order.n_parts}};
    CANDOR_TRY(add(part, tensor.dtype, mine, {write, {tensor.bytes()}}));
  }
  return {};
}

// dst: [n_out / n_parts, n_in], of one expert's src: [n_in, n_out].
struct Turn {
  size_t n_in;
  size_t n_out;
  PartOrder order;
  size_t unit;
  void run(const std::byte* src, int32_t part, std::byte* dst) const {
    constexpr size_t kTile = 64;  // inputs whose lines stay in the cache
    const auto begin = static_cast<size_t>(order.first(part, static_cast<int64_t>(n_out)));
    const auto step = static_cast<size_t>(order.step());
    const size_t n_mine = n_out / static_cast<size_t>(order.n_parts);
    for (size_t first = 0; first < n_in; first += kTile) {
      const size_t end = std::min(n_in, first + kTile);
      for (size_t i = 0; i < n_mine; ++i) {
        const size_t out = begin + i * step;
        for (size_t in = first; in < end; ++in) {
          std::memcpy(dst + (i * n_in + in) * unit, src + (in * n_out + out) * unit, unit);
        }
      }
    }
  }
};

Result<void> split_matrices(const TensorView& tensor, PartOrder order, const AddPart& add) {
  const Shape& shape = tensor.shape;
  const Turn turn{static_cast<size_t>(shape[1]), static_cast<size_t>(shape[2]), order, unit_of(tensor.dtype)};
  for (int32_t part = 0; part < order.n_parts; ++part) {
    const auto write = [tensor, turn, part](std::byte* to) -> Result<void> {
      const size_t expert_bytes = turn.n_in * turn.n_out * turn.unit;
      for (size_t expert = 0; expert < static_cast<size_t>(tensor.shape[0]); ++expert) {
        turn.run(tensor.data + expert * expert_bytes, part,
                 to + expert * expert_bytes / static_cast<size_t>(turn.order.n_parts));
      }
      return {};
    };
    const Shape mine{3, {shape[0], shape[2] / order.n_parts, shape[1]}};
    CANDOR_TRY(add(part, tensor.dtype, mine, {write, {tensor.bytes()}}));
  }
  return {};
}

Result<void> split_codes(const TensorView& codes, const TensorView& scales, PartOrder order, const AddPart& add) {
  const Shape& shape = codes.shape;
  for (int32_t part = 0; part < order.n_parts; ++part) {
    const auto write = [codes, scales, order, part](std::byte* to) -> Result<void> {
      auto* dst = reinterpret_cast<BlockMXFP4*>(to);
      const auto n_groups = static_cast<size_t>(codes.shape[2]);
      for_part_rows(codes.shape, order, part, [&](int64_t row) {
        const size_t first = static_cast<size_t>(row) * n_groups;
        for (size_t group = first; group < first + n_groups; ++group, ++dst) {
          dst->e = static_cast<uint8_t>(scales.data[group]);
          to_halves(reinterpret_cast<const uint8_t*>(codes.data) + group * kGroupBytes, dst->qs);
        }
      });
      return {};
    };
    const Shape mine{3, {shape[0], shape[1] / order.n_parts, shape[2] * BlockMXFP4::kElements}};
    CANDOR_TRY(add(part, DType::kMXFP4, mine, {write, {codes.bytes(), scales.bytes()}}));
  }
  return {};
}

struct Rows {
  size_t n_bytes;  // of one
  bool are_halves;
};

// The rows of the parts as they stand in one tensor.
std::vector<std::byte> join_rows(std::span<const TensorView> parts, Rows rows,
                                 const std::function<void(const TensorView&, int64_t row, std::byte* dst)>& write) {
  const Shape& shape = parts.front().shape;
  const PartOrder order{static_cast<int32_t>(parts.size()), rows.are_halves};
  const Shape joined_shape{2, {shape[0], shape[1] * order.n_parts}};
  std::vector<std::byte> joined(static_cast<size_t>(joined_shape.n_elements()) * rows.n_bytes);
  for (int32_t part = 0; part < order.n_parts; ++part) {
    int64_t row = 0;
    for_part_rows(joined_shape, order, part, [&](int64_t place) {
      write(parts[static_cast<size_t>(part)], row++, joined.data() + static_cast<size_t>(place) * rows.n_bytes);
    });
  }
  return joined;
}

const BlockMXFP4* blocks_of(const TensorView& part, int64_t row) {
  return reinterpret_cast<const BlockMXFP4*>(part.data) + row * (part.shape[2] / BlockMXFP4::kElements);
}

}  // namespace

Result<PartOrder> part_order(const HubExperts& row, const HubConfig& config) {
  PartOrder order{static_cast<int32_t>(row.n_parts()), row.are_halves};
  if (row.n_in == nullptr) return order;
  CANDOR_ASSIGN(const std::optional<double> n_in, hub_number(config, row.n_in));
  if (n_in && *n_in > 0.0 && *n_in <= static_cast<double>(INT32_MAX)) order.n_in = static_cast<int64_t>(*n_in);
  return order;
}

Result<void> split_experts(const JoinedExperts& joined, PartOrder order, const AddPart& add) {
  const TensorView& tensor = joined.tensor;
  const Shape& shape = tensor.shape;
  if (order.n_in > 0 && is_plain(tensor.dtype) && shape.n_dims == 3 && shape[2] == order.n_in) {
    if (order.n_parts > 1) return split_rows(tensor, add);
    const auto write = [tensor](std::byte* to) -> Result<void> {
      std::memcpy(to, tensor.data, tensor.n_bytes);
      return {};
    };
    return add(0, tensor.dtype, shape, {write, {tensor.bytes()}});
  }
  const bool has_parts = shape.n_dims >= 2 && shape[shape.n_dims == 3 ? 2 : 1] % order.n_parts == 0;
  if (joined.scales != nullptr) {
    if (tensor.dtype != DType::kI8 || shape.n_dims != 4 || shape[3] != static_cast<int64_t>(kGroupBytes) ||
        !has_parts) {
      return bad_shape(tensor, "bytes [experts, outputs, groups, 16]");
    }
    const Shape expected{3, {shape[0], shape[1], shape[2]}};
    if (joined.scales->dtype == DType::kI8 && joined.scales->shape == expected) {
      return split_codes(tensor, *joined.scales, order, add);
    }
    return bad_shape(*joined.scales, fmt::format("bytes {}", to_string(expected)));
  }
  if (!is_plain(tensor.dtype) || (shape.n_dims != 2 && shape.n_dims != 3) || !has_parts) {
    return bad_shape(tensor, "F32, F16 or BF16 of [experts, inputs, outputs], or [experts, outputs] of biases");
  }
  return shape.n_dims == 2 ? split_biases(tensor, order, add) : split_matrices(tensor, order, add);
}

Result<Shape> stacked_rows(const TensorView& tensor, int64_t n_experts) {
  if (tensor.shape.n_dims == 2 && n_experts > 0 && tensor.shape[0] > 0 && tensor.shape[0] % n_experts == 0) {
    return Shape{3, {n_experts, tensor.shape[0] / n_experts, tensor.shape[1]}};
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor {}: shape {}; expected the rows of {} experts", formats::in_quotes(tensor.name),
                          to_string(tensor.shape), n_experts));
}

void transpose_each(const TensorView& from, std::byte* to) {
  const int64_t n_matrices = from.shape.n_dims == 3 ? from.shape[0] : 1;
  const int64_t n_rows = from.shape[from.shape.n_dims - 2], n_cols = from.shape[from.shape.n_dims - 1];
  const size_t n_bytes = from.n_bytes / static_cast<size_t>(n_matrices);
  for (int64_t i = 0; i < n_matrices; ++i) {
    const size_t at = static_cast<size_t>(i) * n_bytes;
    transpose_elements(from.data + at, static_cast<size_t>(n_rows), static_cast<size_t>(n_cols),
                       static_cast<size_t>(dtype_info(from.dtype).block_bytes), to + at);
  }
}

Result<void> split_rows(const TensorView& tensor, const AddPart& add) {
  constexpr size_t kParts = 2;
  Shape shape = tensor.shape;
  const auto at_rows = static_cast<size_t>(shape.n_dims - 2);
  if (!is_plain(tensor.dtype) || (shape.n_dims != 2 && shape.n_dims != 3) || shape.dims[at_rows] % 2 != 0) {
    return bad_shape(tensor, "F32, F16 or BF16 of an even number of rows");
  }
  const size_t n_runs = shape.n_dims == 3 ? static_cast<size_t>(shape[0]) : 1;
  shape.dims[at_rows] /= kParts;
  for (size_t part = 0; part < kParts; ++part) {
    const auto write = [tensor, n_runs, part](std::byte* to) -> Result<void> {
      const size_t run_bytes = n_runs == 0 ? 0 : tensor.n_bytes / n_runs / kParts;
      for (size_t run = 0; run < n_runs; ++run) {
        std::memcpy(to + run * run_bytes, tensor.data + (kParts * run + part) * run_bytes, run_bytes);
      }
      return {};
    };
    CANDOR_TRY(add(static_cast<int32_t>(part), tensor.dtype, shape, {write, {tensor.bytes()}}));
  }
  return {};
}

void join_halves(const float* first, const float* second, const Shape& shape, float* joined) {
  const int64_t n_runs = shape.n_dims == 3 ? shape[0] : 1;
  const int64_t run = shape.n_elements() / std::max<int64_t>(n_runs, 1);
  for (int64_t i = 0; i < n_runs; ++i) {
    std::copy_n(first + i * run, run, joined + 2 * i * run);
    std::copy_n(second + i * run, run, joined + (2 * i + 1) * run);
  }
}

std::vector<std::byte> join_biases(std::span<const TensorView> parts, DType dtype, bool are_halves) {
  const size_t unit = unit_of(dtype);
  return join_rows(parts, {unit, are_halves}, [&](const TensorView& part, int64_t row, std::byte* dst) {
    float value = 0.0f;
    decode_elements(part.dtype, part.data + static_cast<size_t>(row) * unit_of(part.dtype), 1, &value);
    encode_elements(dtype, &value, 1, dst);
  });
}

std::vector<std::byte> join_matrices(std::span<const TensorView> parts, DType dtype, bool are_halves) {
  const Shape& shape = parts.front().shape;
  const auto n_experts = static_cast<size_t>(shape[0]);
  const auto n_in = static_cast<size_t>(shape[2]);
  std::vector<float> values(n_in);
  const auto write = [&](const TensorView& part, int64_t row, std::byte* dst) {
    decode_elements(part.dtype, part.data + static_cast<size_t>(row) * part.row_bytes(), part.shape[2], values.data());
    encode_elements(dtype, values.data(), part.shape[2], dst);
  };
  const std::vector<std::byte> rows = join_rows(parts, {n_in * unit_of(dtype), are_halves}, write);
  std::vector<std::byte> transposed(rows.size());
  const Turn turn{static_cast<size_t>(shape[1]) * parts.size(), n_in, {}, unit_of(dtype)};
  const size_t expert_bytes = rows.size() / n_experts;
  for (size_t expert = 0; expert < n_experts; ++expert) {
    turn.run(rows.data() + expert * expert_bytes, 0, transposed.data() + expert * expert_bytes);
  }
  return transposed;
}

std::vector<std::byte> join_codes(std::span<const TensorView> parts, DType, bool are_halves) {
  const auto n_groups = static_cast<size_t>(parts.front().shape[2] / BlockMXFP4::kElements);
  return join_rows(parts, {n_groups * kGroupBytes, are_halves},
                   [&](const TensorView& part, int64_t row, std::byte* dst) {
                     for (size_t group = 0; group < n_groups; ++group) {
                       to_pairs(blocks_of(part, row)[group].qs, reinterpret_cast<uint8_t*>(dst) + group * kGroupBytes);
                     }
                   });
}

std::vector<std::byte> join_scales(std::span<const TensorView> parts, DType, bool are_halves) {
  const auto n_groups = static_cast<size_t>(parts.front().shape[2] / BlockMXFP4::kElements);
  return join_rows(parts, {n_groups, are_halves}, [&](const TensorView& part, int64_t row, std::byte* dst) {
    for (size_t group = 0; group < n_groups; ++group) dst[group] = std::byte{blocks_of(part, row)[group].e};
  });
}

}  // namespace candor::model
