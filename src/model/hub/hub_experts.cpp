#include "model/hub/hub_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "formats/quote.h"
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

Result<void> split_biases(const TensorView& tensor, int32_t n_parts, const AddPart& add) {
  const int64_t n_experts = tensor.shape[0];
  const int64_t n_out = tensor.shape[1];
  const size_t unit = unit_of(tensor.dtype);
  for (int32_t part = 0; part < n_parts; ++part) {
    CANDOR_ASSIGN(std::byte * dst, add(part, tensor.dtype, {2, {n_experts, n_out / n_parts}}));
    for (int64_t i = part; i < n_experts * n_out; i += n_parts, dst += unit) {
      std::memcpy(dst, tensor.data + static_cast<size_t>(i) * unit, unit);
    }
  }
  return {};
}

// dst: [n_out / n_parts, n_in], of one expert's src: [n_in, n_out].
struct Turn {
  size_t n_in;
  size_t n_out;
  size_t n_parts;
  size_t unit;
  void run(const std::byte* src, size_t part, std::byte* dst) const {
    constexpr size_t kTile = 64;  // inputs whose lines stay in the cache
    for (size_t first = 0; first < n_in; first += kTile) {
      const size_t end = std::min(n_in, first + kTile);
      for (size_t out = part; out < n_out; out += n_parts) {
        for (size_t in = first; in < end; ++in) {
          std::memcpy(dst + (out / n_parts * n_in + in) * unit, src + (in * n_out + out) * unit, unit);
        }
      }
    }
  }
};

Result<void> split_matrices(const TensorView& tensor, int32_t n_parts, const AddPart& add) {
  const Shape& shape = tensor.shape;
  const Turn turn{static_cast<size_t>(shape[1]), static_cast<size_t>(shape[2]), static_cast<size_t>(n_parts),
                  unit_of(tensor.dtype)};
  const size_t expert_bytes = turn.n_in * turn.n_out * turn.unit;
  for (int32_t part = 0; part < n_parts; ++part) {
    CANDOR_ASSIGN(std::byte * dst, add(part, tensor.dtype, {3, {shape[0], shape[2] / n_parts, shape[1]}}));
    for (size_t expert = 0; expert < static_cast<size_t>(shape[0]); ++expert) {
      turn.run(tensor.data + expert * expert_bytes, static_cast<size_t>(part),
               dst + expert * expert_bytes / turn.n_parts);
    }
  }
  return {};
}

Result<void> split_codes(const TensorView& codes, const TensorView& scales, int32_t n_parts, const AddPart& add) {
  const Shape& shape = codes.shape;
  const auto n_groups = static_cast<size_t>(shape[2]);
  const int64_t n_rows = shape[0] * shape[1];
  for (int32_t part = 0; part < n_parts; ++part) {
    const Shape mine{3, {shape[0], shape[1] / n_parts, shape[2] * BlockMXFP4::kElements}};
    CANDOR_ASSIGN(std::byte * memory, add(part, DType::kMXFP4, mine));
    auto* dst = reinterpret_cast<BlockMXFP4*>(memory);
    for (int64_t row = part; row < n_rows; row += n_parts) {
      const size_t first = static_cast<size_t>(row) * n_groups;
      for (size_t group = first; group < first + n_groups; ++group, ++dst) {
        dst->e = static_cast<uint8_t>(scales.data[group]);
        to_halves(reinterpret_cast<const uint8_t*>(codes.data) + group * kGroupBytes, dst->qs);
      }
    }
  }
  return {};
}

// The rows (of row_bytes) of the parts in turn.
std::vector<std::byte> in_turn(std::span<const TensorView> parts, size_t row_bytes,
                               const std::function<void(const TensorView&, int64_t row, std::byte* dst)>& write) {
  const int64_t n_rows = parts.front().shape[0] * parts.front().shape[1];
  std::vector<std::byte> joined(static_cast<size_t>(n_rows) * parts.size() * row_bytes);
  std::byte* dst = joined.data();
  for (int64_t row = 0; row < n_rows; ++row) {
    for (const TensorView& part : parts) {
      write(part, row, dst);
      dst += row_bytes;
    }
  }
  return joined;
}

const BlockMXFP4* blocks_of(const TensorView& part, int64_t row) {
  return reinterpret_cast<const BlockMXFP4*>(part.data) + row * (part.shape[2] / BlockMXFP4::kElements);
}

}  // namespace

Result<void> split_experts(const JoinedExperts& joined, int32_t n_parts, const AddPart& add) {
  const TensorView& tensor = joined.tensor;
  const Shape& shape = tensor.shape;
  const bool has_parts = shape.n_dims >= 2 && shape[shape.n_dims == 3 ? 2 : 1] % n_parts == 0;
  if (joined.scales != nullptr) {
    if (tensor.dtype != DType::kI8 || shape.n_dims != 4 || shape[3] != static_cast<int64_t>(kGroupBytes) ||
        !has_parts) {
      return bad_shape(tensor, "bytes [experts, outputs, groups, 16]");
    }
    const Shape expected{3, {shape[0], shape[1], shape[2]}};
    if (joined.scales->dtype == DType::kI8 && joined.scales->shape == expected) {
      return split_codes(tensor, *joined.scales, n_parts, add);
    }
    return bad_shape(*joined.scales, fmt::format("bytes {}", to_string(expected)));
  }
  if (!is_plain(tensor.dtype) || (shape.n_dims != 2 && shape.n_dims != 3) || !has_parts) {
    return bad_shape(tensor, "F32, F16 or BF16 of [experts, inputs, outputs], or [experts, outputs] of biases");
  }
  return shape.n_dims == 2 ? split_biases(tensor, n_parts, add) : split_matrices(tensor, n_parts, add);
}

std::vector<std::byte> join_biases(std::span<const TensorView> parts, DType dtype) {
  const size_t unit = unit_of(dtype);
  return in_turn(parts, unit, [&](const TensorView& part, int64_t row, std::byte* dst) {
    float value = 0.0f;
    decode_elements(part.dtype, part.data + static_cast<size_t>(row) * unit_of(part.dtype), 1, &value);
    encode_elements(dtype, &value, 1, dst);
  });
}

std::vector<std::byte> join_matrices(std::span<const TensorView> parts, DType dtype) {
  const Shape& shape = parts.front().shape;
  const auto n_experts = static_cast<size_t>(shape[0]);
  const auto n_in = static_cast<size_t>(shape[2]);
  std::vector<float> values(n_in);
  const std::vector<std::byte> rows =
      in_turn(parts, n_in * unit_of(dtype), [&](const TensorView& part, int64_t row, std::byte* dst) {
        decode_elements(part.dtype, part.data + static_cast<size_t>(row) * part.row_bytes(), part.shape[2],
                        values.data());
        encode_elements(dtype, values.data(), part.shape[2], dst);
      });
  std::vector<std::byte> turned(rows.size());
  const Turn turn{static_cast<size_t>(shape[1]) * parts.size(), n_in, 1, unit_of(dtype)};
  const size_t expert_bytes = rows.size() / n_experts;
  for (size_t expert = 0; expert < n_experts; ++expert) {
    turn.run(rows.data() + expert * expert_bytes, 0, turned.data() + expert * expert_bytes);
  }
  return turned;
}

std::vector<std::byte> join_codes(std::span<const TensorView> parts, DType) {
  const auto n_groups = static_cast<size_t>(parts.front().shape[2] / BlockMXFP4::kElements);
  return in_turn(parts, n_groups * kGroupBytes, [&](const TensorView& part, int64_t row, std::byte* dst) {
    for (size_t group = 0; group < n_groups; ++group) {
      to_pairs(blocks_of(part, row)[group].qs, reinterpret_cast<uint8_t*>(dst) + group * kGroupBytes);
    }
  });
}

std::vector<std::byte> join_scales(std::span<const TensorView> parts, DType) {
  const auto n_groups = static_cast<size_t>(parts.front().shape[2] / BlockMXFP4::kElements);
  return in_turn(parts, n_groups, [&](const TensorView& part, int64_t row, std::byte* dst) {
    for (size_t group = 0; group < n_groups; ++group) dst[group] = std::byte{blocks_of(part, row)[group].e};
  });
}

}  // namespace candor::model
