#include "quantize/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>

#include "formats/quote.h"
#include "tensor/quant/w8a8.h"

namespace candor::quantize {
namespace {

constexpr Recipe kRecipes[] = {
    {"F32", DType::kF32, 0},          {"F16", DType::kF16, 1},        {"BF16", DType::kBF16, 32},
    {"W8A8", DType::kW8A8, 120},      {"Q8_0", DType::kQ8_0, 7},      {"Q4_0", DType::kQ4_0, 2},
    {"Q5_0", DType::kQ5_0, 8},        {"Q2_K", DType::kQ2_K, 10},     {"Q3_K_M", DType::kQ3_K, 12},
    {"Q4_K_M", DType::kQ4_K, 15},     {"Q5_K_M", DType::kQ5_K, 17},   {"Q6_K", DType::kQ6_K, 18},
    {"IQ2_XXS", DType::kIQ2_XXS, 19}, {"IQ2_XS", DType::kIQ2_XS, 20}, {"IQ2_S", DType::kIQ2_S, 28},
    {"IQ3_XXS", DType::kIQ3_XXS, 23}, {"IQ3_S", DType::kIQ3_S, 26},   {"IQ4_XS", DType::kIQ4_XS, 30},
    {"IQ4_NL", DType::kIQ4_NL, 25},   {"TQ1_0", DType::kTQ1_0, 36},   {"TQ2_0", DType::kTQ2_0, 37},
    {"MXFP4", DType::kMXFP4, 38},
};

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return result;
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

bool is_mixed(DType dtype) {
  return dtype == DType::kQ2_K || dtype == DType::kQ3_K || dtype == DType::kQ4_K || dtype == DType::kQ5_K;
}

// Fewer than Q6_K, which the output matrix gets.
bool has_few_bits(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return info.block_bytes * 8 < info.block_elements * 6;
}

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at) {
    if (matches(rest, name.substr(at))) return true;
  }
  return false;
}

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool stays_float(const TensorView& tensor) {
  return tensor.shape.n_dims < 2 || !tensor.name.ends_with("weight") || has(tensor.name, "_norm.") ||
         has(tensor.name, "ffn_gate_inp") || tensor.name == "position_embd.weight" ||
         tensor.name == "token_types.weight" || tensor.name.starts_with("cls.") || tensor.name.starts_with("dense_");
}

// -1 outside the blocks.
int32_t layer_of(std::string_view name) {
  int32_t layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

// The first and last eighth of the blocks, and every third between.
bool is_sensitive(int32_t layer, int32_t n_layers) {
  return layer < n_layers / 8 || layer >= 7 * n_layers / 8 || (layer - n_layers / 8) % 3 == 2;
}

DType value_type(DType base, const ModelShape& shape, int32_t layer) {
  if (shape.n_experts == 8) return DType::kQ8_0;
  if (base == DType::kQ2_K) return shape.n_heads_per_kv >= 4 ? DType::kQ4_K : DType::kQ3_K;
  if (base == DType::kQ3_K) return layer < 2 ? DType::kQ5_K : DType::kQ4_K;
  return is_sensitive(layer, shape.n_layers) ? DType::kQ6_K : base;
}

DType down_type(DType base, const ModelShape& shape, int32_t layer) {
  if (base == DType::kQ2_K) return DType::kQ3_K;
  if (base == DType::kQ3_K) return layer < shape.n_layers / 16 ? DType::kQ5_K : DType::kQ4_K;
  return is_sensitive(layer, shape.n_layers) ? DType::kQ6_K : base;
}

DType fused_type(DType base) {
  if (base == DType::kQ3_K) return DType::kQ4_K;
  if (base == DType::kQ4_K) return DType::kQ5_K;
  return base == DType::kQ5_K ? DType::kQ6_K : base;
}

DType mixed_type(DType base, const ModelShape& shape, std::string_view name) {
  const int32_t layer = layer_of(name);
  if (has(name, "attn_v.")) return value_type(base, shape, layer);
  if (has(name, "ffn_down")) return down_type(base, shape, layer);
  if (has(name, "attn_qkv.")) return fused_type(base);
  if (has(name, "attn_output.")) {
    if (base == DType::kQ2_K) return DType::kQ3_K;
    return base == DType::kQ3_K ? DType::kQ4_K : base;
  }
  return base;
}

DType fitting(DType dtype, int64_t row_elements) {
  if (dtype == DType::kW8A8 && row_elements > quant::kMostW8A8Elements) dtype = DType::kQ8_0;
  while (row_elements % dtype_info(dtype).block_elements != 0) {
    switch (dtype) {
      case DType::kQ2_K:
      case DType::kQ3_K:
      case DType::kIQ2_XXS:
      case DType::kIQ2_XS:
      case DType::kIQ2_S:
      case DType::kIQ3_XXS:
      case DType::kIQ3_S:
      case DType::kIQ4_XS:
      case DType::kTQ1_0:
      case DType::kTQ2_0:
        dtype = DType::kIQ4_NL;
        break;
      case DType::kQ4_K:
        dtype = DType::kQ5_0;
        break;
      case DType::kQ5_K:
        dtype = DType::kQ5_1;
        break;
      case DType::kQ6_K:
        dtype = DType::kQ8_0;
        break;
      default:
        dtype = DType::kF16;
    }
  }
  return dtype;
}

}  // namespace

std::span<const Recipe> recipes() {
  return kRecipes;
}

Result<Recipe> find_recipe(std::string_view name) {
  const auto* found = std::ranges::find(kRecipes, upper(name), &Recipe::name);
  if (found != std::end(kRecipes)) return *found;
  std::string known;
  for (const Recipe& recipe : kRecipes) known += fmt::format("{}{}", known.empty() ? "" : ", ", recipe.name);
  return fail(ErrorKind::kInvalidInput,
              fmt::format("quantisation {} is not known; expected one of {}", formats::in_quotes(name), known));
}

Result<Override> parse_override(std::string_view text) {
  const size_t equals = text.rfind('=');
  const std::string type = equals == std::string_view::npos ? std::string() : upper(text.substr(equals + 1));
  const DTypeInfo* info = find_dtype(std::string_view(type));
  if (equals == 0 || info == nullptr || !info->is_weight) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: expected NAME=TYPE, as in blk.*.ffn_down.weight=q6_k, with a "
                            "type of {}",
                            formats::in_quotes(text), weight_dtype_names()));
  }
  return Override{std::string(text.substr(0, equals)), info->dtype};
}

Result<void> check_overrides(std::span<const Override> overrides, std::span<const TensorView> tensors) {
  for (const Override& one : overrides) {
    if (std::ranges::any_of(tensors, [&](const TensorView& tensor) { return matches(one.pattern, tensor.name); }))
      continue;
    const std::string_view begin = std::string_view(one.pattern).substr(0, one.pattern.find('*'));
    const auto like = std::ranges::find_if(tensors, [&](const auto& tensor) { return tensor.name.starts_with(begin); });
    const std::string known = like == tensors.end() ? "" : fmt::format(", as {}", formats::in_quotes(like->name));
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--tensor-type {}: the model has no tensor of this name; write it whole{}, or with * for "
                            "any text (candor show --tensors lists them)",
                            formats::in_quotes(one.pattern), known));
  }
  return {};
}

DType type_for(const Recipe& recipe, std::span<const Override> overrides, const ModelShape& shape,
               const TensorView& tensor) {
  if (stays_float(tensor)) return DType::kF32;
  const int64_t row = tensor.shape.row_elements();
  for (size_t i = overrides.size(); i-- > 0;) {
    if (matches(overrides[i].pattern, tensor.name)) return fitting(overrides[i].dtype, row);
  }
  if (is_float(recipe.dtype)) return recipe.dtype;
  const bool is_head = tensor.name == "output.weight" || (shape.is_tied && tensor.name == "token_embd.weight");
  const bool is_table = is_head || tensor.name == "token_embd.weight";
  const bool is_fp4 = recipe.dtype == DType::kMXFP4;
  if (is_fp4 && shape.n_experts > 0 && !has(tensor.name, "_exps.")) return fitting(DType::kQ8_0, row);
  // One scale for the whole final row costs more accuracy than it gains time: a step reads one matrix of these.
  if (is_table && (is_fp4 || recipe.dtype == DType::kW8A8)) return fitting(DType::kQ8_0, row);
  if (is_head && has_few_bits(recipe.dtype)) return fitting(DType::kQ6_K, row);
  return fitting(is_mixed(recipe.dtype) ? mixed_type(recipe.dtype, shape, tensor.name) : recipe.dtype, row);
}

}  // namespace candor::quantize
