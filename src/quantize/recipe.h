#pragma once
// Which type each tensor of a quantised file gets. Recipes are named as users know them; the mixed ones (..._M and
// Q2_K) give more bits to the tensors that the output is most sensitive to, by the rules that llama.cpp made customary,
// so that sizes compare. Vectors, routers, positions and norms stay f32.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::quantize {

struct Recipe {
  std::string_view name;  // "Q4_K_M"
  DType dtype;            // of most tensors
  uint32_t file_type;     // general.file_type of GGUF; of a type of our own, its number
};

std::span<const Recipe> recipes();
// Any case; an unknown name is an error that lists the known ones.
Result<Recipe> find_recipe(std::string_view name);

// Tensors whose name matches the pattern ("*" stands for any text) get the type.
struct Override {
  std::string pattern;
  DType dtype;
};
// "blk.*.ffn_down.weight=q6_k"
Result<Override> parse_override(std::string_view text);

// Refuses one that is the name of no tensor.
Result<void> check_overrides(std::span<const Override> overrides, std::span<const TensorView> tensors);

// What the rules look at besides the tensor.
struct ModelShape {
  int32_t n_layers = 0;
  int32_t n_heads_per_kv = 1;
  int32_t n_experts = 0;
  bool is_tied = false;
};

// The type that the recipe and the overrides (the last that matches wins) give to a tensor. One whose rows are no whole
// number of blocks gets the next larger type that fits.
DType type_for(const Recipe& recipe, std::span<const Override> overrides, const ModelShape& shape,
               const TensorView& tensor);

}  // namespace candor::quantize
