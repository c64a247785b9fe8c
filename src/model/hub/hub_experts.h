#pragma once
// Converts experts that a Hugging Face checkpoint keeps in one tensor for all (gpt-oss) to the tensors of a GGUF file,
// and back. Matrices are floats, [experts, inputs, outputs], or MXFP4 in two tensors of bytes, codes and exponents.
// Biases are [experts, outputs]. The outputs may belong to two tensors (gate and up), alternating or one half each.
//
// MXFP4: codes are [experts, outputs, groups, 16], where byte j holds elements 2 j (low nibble) and 2 j + 1 (high
// nibble) of its group of 32; exponents are [experts, outputs, groups].

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/tensor_copies.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_form.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {

inline constexpr std::string_view kBlocksEnd = "_blocks";
inline constexpr std::string_view kScalesEnd = "_scales";
inline constexpr std::string_view kBiasEnd = "_bias";

// A tensor of the folder, and the exponents that belong to it where it is codes.
struct JoinedExperts {
  TensorView tensor;
  const TensorView* scales = nullptr;
};

// Part `part`, of that type and shape: [experts, outputs, inputs], or [experts, outputs] of biases; and what it is made
// of.
using AddPart =
    std::function<Result<void>(int32_t part, DType dtype, const Shape& shape, formats::CopySource source)>;

// Where the outputs of each part stand.
struct PartOrder {
  int32_t n_parts = 1;  // 1 or 2
  bool are_halves = false;
  int64_t n_in = 0;  // > 0: matrices whose last dimension it is are [experts, outputs, inputs] already, in halves
  // Of n_out outputs together.
  int64_t first(int64_t part, int64_t n_out) const { return are_halves ? part * n_out / n_parts : part; }
  int64_t step() const { return are_halves ? 1 : n_parts; }
};

Result<PartOrder> part_order(const HubExperts& row, const HubConfig& config);

// The parts. Refuses by name shapes and types that are not the ones above.
Result<void> split_experts(const JoinedExperts& joined, PartOrder order, const AddPart& add);

// [experts, rows, columns] of all experts' rows, one behind the other. Refuses others by name.
Result<Shape> stacked_rows(const TensorView& tensor, int64_t n_experts);
// from: [rows, columns], or [experts, rows, columns], of elements of whole bytes; to: [.., columns, rows].
void transpose_each(const TensorView& from, std::byte* to);

// [.., 2 n, k] as two tensors [.., n, k]. Refuses others by name.
Result<void> split_rows(const TensorView& tensor, const AddPart& add);
// Back. shape: of each half.
void join_halves(const float* first, const float* second, const Shape& shape, float* joined);

// Back. parts: 1 or 2 tensors of one shape.
std::vector<std::byte> join_biases(std::span<const TensorView> parts, DType dtype, bool are_halves);
std::vector<std::byte> join_matrices(std::span<const TensorView> parts, DType dtype, bool are_halves);
// Bytes. REQUIRES: MXFP4.
std::vector<std::byte> join_codes(std::span<const TensorView> parts, DType, bool are_halves);
std::vector<std::byte> join_scales(std::span<const TensorView> parts, DType, bool are_halves);

}  // namespace candor::model
