#include "model/hub/hub_names.h"

#include <algorithm>
#include <cstring>

#include "base/rounded_math.h"
#include "model/families/families.h"
#include "model/hparams.h"
#include "model/tensor_roles.h"
#include "tensor/dtype.h"

namespace candor::model {

std::optional<Match> match_name(std::string_view pattern, std::string_view name) {
  Match match;
  size_t at = 0;
  for (const char c : pattern) {
    if (c != '*' && c != '#') {
      if (at == name.size() || name[at] != c) return std::nullopt;
      ++at;
      continue;
    }
    std::string& digits = c == '*' ? match.block : match.expert;
    while (at < name.size() && name[at] >= '0' && name[at] <= '9') digits += name[at++];
    if (digits.empty() || digits.size() > 6) return std::nullopt;
  }
  return at == name.size() ? std::optional<Match>(match) : std::nullopt;
}

std::optional<std::string> expert_pattern(std::string_view name) {
  constexpr std::string_view kEnd = "_exps.weight";
  if (!name.ends_with(kEnd)) return std::nullopt;
  return std::string(name.substr(0, name.size() - kEnd.size())) + ".#.weight";
}

std::string fill_name(std::string_view pattern, const Match& match) {
  std::string name;
  for (const char c : pattern) name += c == '*' ? match.block : c == '#' ? match.expert : std::string(1, c);
  return name;
}

std::vector<float> sinusoids(int32_t n_positions, int32_t dim) {
  const int32_t half = dim / 2;
  std::vector<float> values(static_cast<size_t>(n_positions) * static_cast<size_t>(dim));
  for (int32_t position = 0; position < n_positions; ++position) {
    float* row = values.data() + static_cast<size_t>(position) * static_cast<size_t>(dim);
    for (int32_t i = 0; i < half; ++i) {
      const double angle = (position + 2) * rounded_exp(-i * rounded_log(10000.0) / (half - 1));
      const SinCos turn = rounded_sincos(angle);
      row[i] = static_cast<float>(turn.sin);
      row[half + i] = static_cast<float>(turn.cos);
    }
  }
  return values;
}

Result<std::optional<Shape>> unpublished_positions(const formats::ModelFile& file, const Family& family) {
  const auto is_table = [](const TensorName& row) { return row.role == TensorRole::kPositions; };
  const bool has_table = std::ranges::any_of(
      file.tensors(), [](const TensorView& tensor) { return tensor.name == "position_embd.weight"; });
  if (has_table || std::ranges::none_of(family.tensors, is_table)) return std::nullopt;
  const Hparams hparams(file, family.name);
  CANDOR_ASSIGN(const int32_t n_positions, hparams.require_int("context_length", {1, 1 << 16}));
  CANDOR_ASSIGN(const int32_t dim, hparams.require_int("embedding_length", {4, 1 << 14}));
  return Shape{2, {n_positions, dim}};
}

bool is_sinusoids(const TensorView& tensor) {
  if (tensor.dtype != DType::kF32 || tensor.shape.n_dims != 2 || tensor.shape[1] < 4) return false;
  const std::vector<float> values =
      sinusoids(static_cast<int32_t>(tensor.shape[0]), static_cast<int32_t>(tensor.shape[1]));
  return std::memcmp(values.data(), tensor.data, tensor.n_bytes) == 0;
}

}  // namespace candor::model
