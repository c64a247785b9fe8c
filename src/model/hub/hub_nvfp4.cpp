#include "model/hub/hub_nvfp4.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/changed_file.h"
#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_fp8.h"
#include "model/hub/hub_parts.h"
#include "model/hub/hub_quantization.h"
#include "model/hub/made_tensor.h"
#include "tensor/dtype.h"
#include "tensor/quant/fp4.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;
using quant::BlockFP4;

constexpr int kGroup = BlockFP4::kGroup;
constexpr size_t kMaxQuantConfigBytes = size_t{16} << 20;

// GGUF's type 40.
struct BlockNVFP4 {
  static constexpr int kElements = 64;
  uint8_t scales[4];
  uint8_t qs[4][8];
};
static_assert(sizeof(BlockNVFP4) == 36);

DType type_of_rows(int64_t n_in) {
  return n_in % BlockFP4::kElements == 0 ? DType::kFP4 : DType::kF32;
}

// Sixteen elements as they lie in FP4.
struct Group {
  uint8_t scale;
  std::array<uint8_t, kGroup / 2> pairs;
};

// Rows of groups, group(i) the i-th of all, under one factor; as FP4, or as floats where they are no whole blocks.
template <class GroupAt>
void write_rows(int64_t n_rows, int64_t n_in, float factor, const GroupAt& group, std::byte* dst) {
  const bool has_blocks = type_of_rows(n_in) == DType::kFP4;
  float numbers[BlockFP4::kElements];
  for (int64_t row = 0; row < n_rows; ++row) {
    for (int64_t k = 0; k < n_in; k += BlockFP4::kElements) {
      BlockFP4 block{};
      block.d = factor;
      const auto n = static_cast<int>(std::min<int64_t>(BlockFP4::kElements, n_in - k));
      for (int g = 0; g < n / kGroup; ++g) {
        const Group from = group((row * n_in + k) / kGroup + g);
        block.scales[g] = from.scale;
        std::memcpy(block.qs + g * kGroup / 2, from.pairs.data(), from.pairs.size());
      }
      if (!has_blocks) decode_block(block, numbers);
      const void* src = has_blocks ? static_cast<const void*>(&block) : numbers;
      const size_t n_bytes = has_blocks ? sizeof block : static_cast<size_t>(n) * sizeof(float);
      std::memcpy(dst, src, n_bytes);
      dst += n_bytes;
    }
  }
}

struct Nvfp4Matrix {
  TensorView codes = {};
  TensorView scales = {};
  float factor = 1.0f;

  int64_t n_out() const { return codes.shape[0]; }
  int64_t n_in() const { return codes.shape[1] * 2; }
  Group group(int64_t i) const {
    Group read{};
    read.scale = static_cast<uint8_t>(scales.data[i]);
    std::memcpy(read.pairs.data(), codes.data + static_cast<size_t>(i) * read.pairs.size(), read.pairs.size());
    return read;
  }
};

Result<float> read_factor(const TensorView& tensor, bool is_inverse) {
  const bool is_number = tensor.dtype == DType::kF32 && tensor.shape.n_elements() == 1;
  if (!is_number) {
    return refused_tensor(tensor, fmt::format("{} of shape {}, expected one F32", dtype_info(tensor.dtype).name,
                                              to_string(tensor.shape)));
  }
  float value;
  std::memcpy(&value, tensor.data, sizeof value);
  const float factor = is_inverse ? 1.0f / value : value;
  if (!quant::is_fp8_scale(factor)) return refused_tensor(tensor, fmt::format("{} is no factor of weights", value));
  return factor;
}

// Codes and scales of whole groups.
Result<Nvfp4Matrix> nvfp4_matrix(const TensorView& codes, const TensorView& scales, const TensorView& factor,
                                 bool is_inverse) {
  const bool is_matrix = codes.dtype == DType::kI8 && codes.shape.n_dims == 2 && codes.shape[1] * 2 % kGroup == 0;
  if (!is_matrix) {
    return refused_tensor(codes,
                          fmt::format("{} of shape {}, expected bytes of two codes in rows of whole groups of {}",
                                      dtype_info(codes.dtype).name, to_string(codes.shape), kGroup));
  }
  Nvfp4Matrix m{.codes = codes, .scales = scales};
  CANDOR_TRY(check_part(scales, scales.dtype == DType::kF8_E4M3, Shape{2, {m.n_out(), m.n_in() / kGroup}}));
  CANDOR_ASSIGN(m.factor, read_factor(factor, is_inverse));
  return m;
}

Result<void> check_group(const json& group, const std::string& place, std::string_view name) {
  CANDOR_TRY(check_quantization(member_of(group, "weights"), place + ".weights",
                                {{"type", "float"}, {"num_bits", 4}, {"symmetric", true}, {"group_size", kGroup}},
                                name));
  const json format = member_of(group, "format");
  if (!format.is_null() && format != "nvfp4-pack-quantized") {
    return refused_quantization(name, place + ".format", format, "\"nvfp4-pack-quantized\"");
  }
  const json output = member_of(group, "output_activations");
  if (!output.is_null()) return refused_quantization(name, place + ".output_activations", output, "null");
  return {};
}

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kFactor = ".scale";
constexpr std::string_view kInputFactor = ".input_scale";

// A GGUF file's tensor of that name beside its matrix; nullptr where there is none.
const TensorView* beside(const formats::ModelFile& file, const TensorView& matrix, std::string_view end) {
  if (!matrix.name.ends_with(kWeight)) return nullptr;
  return file.find(std::string(matrix.name.substr(0, matrix.name.size() - kWeight.size())).append(end));
}

Group group_of(const std::byte* blocks, int64_t i) {
  BlockNVFP4 block;
  constexpr int64_t kGroups = BlockNVFP4::kElements / kGroup;
  std::memcpy(&block, blocks + static_cast<size_t>(i / kGroups) * sizeof block, sizeof block);
  const uint8_t* halves = block.qs[i % kGroups];
  Group read{.scale = block.scales[i % kGroups], .pairs = {}};
  const auto code = [halves](int j) { return j < 8 ? halves[j] & 15 : halves[j - 8] >> 4; };
  for (int j = 0; j < kGroup; j += 2) read.pairs[static_cast<size_t>(j) / 2] = quant::two_nibbles(code(j), code(j + 1));
  return read;
}

class JoinedFile final : public formats::ChangedFile {
 public:
  explicit JoinedFile(std::unique_ptr<formats::ModelFile> source) : ChangedFile(std::move(source)) {}

  Result<void> join() {
    std::unordered_set<const TensorView*> dropped;
    for (const TensorView& tensor : base().tensors()) {
      if (tensor.dtype != DType::kNVFP4) continue;
      for (const std::string_view end : {kFactor, kInputFactor}) dropped.insert(beside(base(), tensor, end));
    }
    for (const TensorView& tensor : base().tensors()) {
      if (tensor.dtype == DType::kNVFP4) {
        CANDOR_TRY(add(tensor));
      } else if (!dropped.contains(&tensor)) {
        tensors_.push_back(tensor);
      }
    }
    sort();
    return base().check_intact();
  }

 private:
  // One of all, or one of each matrix of experts.
  Result<std::vector<float>> factors_of(const TensorView& tensor, int64_t n_matrices) const {
    std::vector<float> factors(static_cast<size_t>(n_matrices), 1.0f);
    const TensorView* stored = beside(base(), tensor, kFactor);
    if (stored == nullptr) return factors;
    const int64_t n = stored->shape.n_elements();
    if (stored->dtype != DType::kF32 || (n != 1 && n != n_matrices)) {
      return refused_tensor(*stored, fmt::format("{} of shape {}, expected F32 of {}", dtype_info(stored->dtype).name,
                                                 to_string(stored->shape), n_matrices));
    }
    for (size_t i = 0; i < factors.size(); ++i) {
      std::memcpy(&factors[i], stored->data + (n == 1 ? 0 : i) * sizeof(float), sizeof(float));
      if (!quant::is_fp8_scale(factors[i])) {
        return refused_tensor(*stored, fmt::format("{} is no factor of weights", factors[i]));
      }
    }
    return factors;
  }

  Result<void> add(const TensorView& tensor) {
    TensorView view = tensor;
    const int64_t n_in = tensor.shape.row_elements();
    const int64_t n_matrices = tensor.shape.n_dims == 3 ? tensor.shape[0] : 1;
    const int64_t n_rows = tensor.shape.n_elements() / n_in / n_matrices;
    CANDOR_ASSIGN(std::vector<float> factors, factors_of(tensor, n_matrices));
    view.dtype = type_of_rows(n_in);
    view.n_bytes = static_cast<size_t>(n_rows * n_matrices) * view.row_bytes();
    const size_t matrix_bytes = view.n_bytes / static_cast<size_t>(n_matrices);
    const auto write = [=](const TensorView& from, std::byte* to) {
      for (size_t i = 0; i < factors.size(); ++i) {
        const std::byte* blocks = from.data + i * (from.n_bytes / factors.size());
        write_rows(
            n_rows, n_in, factors[i], [blocks](int64_t g) { return group_of(blocks, g); }, to + i * matrix_bytes);
      }
    };
    CANDOR_ASSIGN(view.data, copies_.add(view.n_bytes, view.name, source_from(tensor, nullptr, write)));
    tensors_.push_back(view);
    return {};
  }
};

}  // namespace

Result<HubWeights> read_modelopt(const json& quantization, std::string_view name) {
  const json algorithm = member_of(quantization, "quant_algo");
  if (algorithm == "FP8") return HubWeights{.form = HubWeightForm::kFp8};
  if (algorithm == "NVFP4" || algorithm == "W4A16_NVFP4") return HubWeights{.form = HubWeightForm::kNvfp4};
  return refused_quantization(name, "quant_algo", algorithm, "\"NVFP4\", \"W4A16_NVFP4\" or \"FP8\"");
}

Result<void> add_modelopt_config(const std::filesystem::path& folder, json& config) {
  const std::filesystem::path path = folder / "hf_quant_config.json";
  std::error_code ignored;
  if (!member_of(config, "quantization_config").is_null() || !std::filesystem::exists(path, ignored)) return {};
  CANDOR_ASSIGN(const json said, formats::read_json_file(path, kMaxQuantConfigBytes));
  json quantization = member_of(said, "quantization");
  if (!quantization.is_object() || member_of(quantization, "quant_algo").is_null()) return {};
  config["quantization_config"] = std::move(quantization);
  return {};
}

Result<HubWeights> read_nvfp4_groups(const json& groups, std::string_view name) {
  for (const auto& [key, group] : groups.items()) {
    CANDOR_TRY(check_group(group, fmt::format("config_groups.{}", key.substr(0, 40)), name));
  }
  return HubWeights{.form = HubWeightForm::kNvfp4};
}

Result<std::optional<JoinedWeight>> join_nvfp4(const TensorView& tensor, const FindTensor& find) {
  constexpr std::string_view kPacked = "_packed";
  const bool is_packed = tensor.name.ends_with(kPacked);
  const std::string name(tensor.name.substr(0, tensor.name.size() - (is_packed ? kPacked.size() : 0)));
  if (!name.ends_with(kWeight) || (!is_packed && tensor.dtype != DType::kI8)) return std::optional<JoinedWeight>();
  const std::string factor_name = name + (is_packed ? "_global_scale" : "_scale_2");
  CANDOR_ASSIGN(const TensorView scales, part_of(tensor, name + "_scale", find));
  CANDOR_ASSIGN(const TensorView factor, part_of(tensor, factor_name, find));
  CANDOR_ASSIGN(const Nvfp4Matrix m, nvfp4_matrix(tensor, scales, factor, is_packed));
  JoinedWeight joined{.name = name, .dtype = type_of_rows(m.n_in()), .shape = {2, {m.n_out(), m.n_in()}}};
  joined.parts = {name + "_scale", factor_name};
  const std::string stem = name.substr(0, name.size() - kWeight.size());
  for (const char* end : {".input_scale", ".input_global_scale", ".k_scale", ".v_scale"}) {
    if (find(stem + end) != nullptr) joined.parts.push_back(stem + end);
  }
  joined.fill = [m](std::byte* dst) {
    write_rows(
        m.n_out(), m.n_in(), m.factor, [&m](int64_t i) { return m.group(i); }, dst);
  };
  return std::optional<JoinedWeight>(std::move(joined));
}

Result<std::unique_ptr<formats::ModelFile>> with_joined_nvfp4(std::unique_ptr<formats::ModelFile> file) {
  const auto is_nvfp4 = [](const TensorView& tensor) { return tensor.dtype == DType::kNVFP4; };
  if (std::ranges::none_of(file->tensors(), is_nvfp4)) return file;
  auto joined = std::make_unique<JoinedFile>(std::move(file));
  CANDOR_TRY(joined->join());
  return std::unique_ptr<formats::ModelFile>(std::move(joined));
}

}  // namespace candor::model
