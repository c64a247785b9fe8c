#pragma once
// Converts the up-projection of latent attention (DeepSeek's kv_b_proj, from the latent to the keys and values of all
// heads) between one tensor, [heads x (key rows, value rows), latent], and the two of newer GGUF files: keys
// transposed, [heads, latent, key], and values, [heads, value, latent].
//
// Elements are copied as they are, except for keys in block formats: a transposed row need not be whole blocks, so
// these keys become the f32 numbers that they decode to.

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {

struct LatentHeads {
  int64_t n_heads = 0;
  int64_t key_dim = 0;  // without the rotated part
  int64_t value_dim = 0;
  int64_t latent_dim = 0;
  Shape joined_shape() const { return {2, {n_heads * (key_dim + value_dim), latent_dim}}; }
  Shape key_shape() const { return {3, {n_heads, latent_dim, key_dim}}; }
  Shape value_shape() const { return {3, {n_heads, value_dim, latent_dim}}; }
};

// Refuses by name sizes that are no sizes, and another shape of the joined tensor.
Result<void> check_joined(const TensorView& tensor, const LatentHeads& heads);

DType key_type_of(DType joined);

// joined: its bytes are in memory.
using WriteLatent = void (*)(const TensorView& joined, const LatentHeads& heads, std::byte* to);
void write_keys(const TensorView& joined, const LatentHeads& heads, std::byte* keys);
void write_values(const TensorView& joined, const LatentHeads& heads, std::byte* values);

// unit: bytes of an element.
void join_latent(const std::byte* keys, const std::byte* values, const LatentHeads& heads, size_t unit,
                 std::byte* joined);

}  // namespace candor::model
