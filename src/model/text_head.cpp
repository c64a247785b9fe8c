#include "model/text_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "base/rounded_math.h"
#include "formats/quote.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

constexpr int64_t kMostOutputs = 1 << 20;
constexpr size_t kLanes = 8;

// Every eighth product in a sum of its own; then the sums, pairwise.
double dot(const float* a, const float* b, size_t n) {
  std::array<double, kLanes> sums{};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (size_t lane = 0; i < n; ++i, ++lane) sums[lane] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

double activated(double x, LayerAct act) {
  switch (act) {
    case LayerAct::kTanh:
      return rounded_tanh(x);
    case LayerAct::kGelu:
      return 0.5 * x * (1.0 + rounded_erf(x / std::sqrt(2.0)));
    case LayerAct::kRelu:
      return std::max(x, 0.0);
    case LayerAct::kSilu:
      return x / (1.0 + rounded_exp(-x));
    case LayerAct::kNone:
      break;
  }
  return x;
}

void apply_norm(const VectorLayer& layer, std::vector<double>& y) {
  const auto n = static_cast<double>(y.size());
  double mean = 0.0, square = 0.0;
  for (const double value : y) mean += value;
  mean /= n;
  for (const double value : y) square += (value - mean) * (value - mean);
  const double scale = 1.0 / std::sqrt(square / n + static_cast<double>(layer.epsilon));
  for (size_t i = 0; i < y.size(); ++i) y[i] = (y[i] - mean) * scale * static_cast<double>(layer.gain[i]);
}

std::vector<float> run_layer(const VectorLayer& layer, std::span<const float> x) {
  const size_t n_in = x.size();
  std::vector<double> y(static_cast<size_t>(layer.n_out));
  for (size_t out = 0; out < y.size(); ++out) {
    const double bias = layer.bias.empty() ? 0.0 : static_cast<double>(layer.bias[out]);
    y[out] = activated(dot(layer.weight.data() + out * n_in, x.data(), n_in) + bias, layer.act);
  }
  if (!layer.gain.empty()) apply_norm(layer, y);
  std::vector<float> result(y.size());
  std::ranges::transform(y, result.begin(), [](double value) { return static_cast<float>(value); });
  return result;
}

class HeadReader {
 public:
  HeadReader(const formats::ModelFile& file, const ArchSpec& spec) : file_(file), spec_(spec) {}

  Result<TextHead> read() {
    CANDOR_TRY(read_pooling());
    CANDOR_TRY(read_dense());
    CANDOR_TRY(read_labels());
    CANDOR_TRY(read_prompts());
    CANDOR_ASSIGN(const auto pairs, formats::meta_string(file_, "tokenizer.chat_template.rerank"));
    head_.answers_yes = pairs.has_value() && head_.labels.size() == 2;
    CANDOR_ASSIGN(const auto most, formats::meta_int(file_, "candor.text.max_tokens"));
    if (most && *most > 0 && *most < spec_.max_positions) head_.max_tokens = static_cast<int32_t>(*most);
    return std::move(head_);
  }

 private:
  std::string key(std::string_view suffix) const { return fmt::format("{}.{}", spec_.family, suffix); }

  static Error bad(std::string_view name, std::string_view reason) {
    return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: {}", formats::in_quotes(name), reason));
  }

  // llama.cpp's numbers: 0 none, 1 mean, 2 cls, 3 last, 4 rank.
  Result<void> read_pooling() {
    CANDOR_ASSIGN(const auto type, formats::meta_int(file_, key("pooling_type")));
    constexpr std::array kTypes = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast, Pooling::kNone};
    if (type && (*type < 0 || *type >= static_cast<int64_t>(kTypes.size()))) {
      return fail(ErrorKind::kUnsupported, fmt::format("metadata key \"{}\": {}; expected 0 (none), 1 (mean), 2 (cls), "
                                                       "3 (last) or 4 (rank)",
                                                       key("pooling_type"), *type));
    }
    if (type) head_.pooling = kTypes[static_cast<size_t>(*type)];
    head_.only_ranks = type == static_cast<int64_t>(kTypes.size()) - 1;
    CANDOR_ASSIGN(const auto weighted, formats::meta_bool(file_, "candor.text.weighted_mean"));
    if (weighted.value_or(false)) head_.pooling = Pooling::kWeighted;
    CANDOR_ASSIGN(const auto normalises, formats::meta_bool(file_, "candor.text.normalise"));
    head_.normalises = normalises.value_or(true);
    return {};
  }

  Result<LayerAct> act_of(std::string_view name) const {
    constexpr std::pair<std::string_view, LayerAct> kNames[] = {
        {"", LayerAct::kNone},     {"identity", LayerAct::kNone}, {"tanh", LayerAct::kTanh},
        {"gelu", LayerAct::kGelu}, {"relu", LayerAct::kRelu},     {"silu", LayerAct::kSilu}};
    for (const auto& [known, act] : kNames) {
      if (name == known) return act;
    }
    return fail(ErrorKind::kUnsupported, fmt::format("the head's activation is {}, expected identity, tanh, gelu, relu "
                                                     "or silu",
                                                     formats::in_quotes(name)));
  }

  Result<std::vector<float>> values_of(const TensorView& tensor) const {
    CANDOR_TRY(file_.make_copy(tensor.bytes()));
    std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
    decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), values.data());
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
      return bad(tensor.name, "holds numbers that are not finite: the file is damaged");
    }
    return values;
  }

  // [n], or empty where the file has none.
  Result<std::vector<float>> vector_of(const std::string& name, int64_t n) const {
    const TensorView* tensor = file_.find(name);
    if (tensor == nullptr) return std::vector<float>();
    if (tensor->shape.n_elements() != n) {
      return bad(name, fmt::format("shape {}; expected {} numbers", to_string(tensor->shape), n));
    }
    return values_of(*tensor);
  }

  // stem.weight, and .bias where there is one.
  Result<VectorLayer> layer_of(std::string_view stem, int64_t n_in, LayerAct act) const {
    const std::string name = fmt::format("{}.weight", stem);
    TensorView tensor = *file_.find(name);
    if (tensor.shape.n_dims == 1) tensor.shape = {2, {1, tensor.shape[0]}};
    const bool fits = tensor.shape.n_dims == 2 && tensor.shape[1] == n_in && tensor.shape[0] <= kMostOutputs;
    if (!fits) return bad(name, fmt::format("shape {}; expected rows of {}", to_string(tensor.shape), n_in));
    VectorLayer layer{.n_in = static_cast<int32_t>(n_in), .n_out = static_cast<int32_t>(tensor.shape[0]), .act = act};
    CANDOR_ASSIGN(layer.weight, values_of(tensor));
    CANDOR_ASSIGN(layer.bias, vector_of(fmt::format("{}.bias", stem), layer.n_out));
    return layer;
  }

  Result<void> read_dense() {
    CANDOR_ASSIGN(const auto* acts, formats::meta_strings(file_, "candor.text.dense_activations"));
    int64_t n_in = spec_.dim;
    for (size_t i = 0; file_.find(fmt::format("dense_{}.weight", i + 2)) != nullptr; ++i) {
      CANDOR_ASSIGN(const LayerAct act, act_of(acts == nullptr || i >= acts->size() ? "" : (*acts)[i]));
      CANDOR_ASSIGN(VectorLayer layer, layer_of(fmt::format("dense_{}", i + 2), n_in, act));
      n_in = layer.n_out;
      head_.dense.push_back(std::move(layer));
    }
    return {};
  }

  Result<void> read_labels() {
    if (file_.find("cls.output.weight") == nullptr) return {};
    CANDOR_ASSIGN(const auto of_tokens, formats::meta_bool(file_, "candor.text.labels_of_tokens"));
    head_.labels_tokens = of_tokens.value_or(false);
    CANDOR_ASSIGN(const auto pooling, formats::meta_string(file_, "candor.text.label_pooling"));
    CANDOR_ASSIGN(const auto pad, formats::meta_int(file_, "candor.text.label_pad"));
    if (pad && *pad >= 0 && *pad < spec_.vocab) head_.label_pad = static_cast<TokenId>(*pad);
    const bool is_encoder = spec_.is_bidirectional;
    head_.label_pooling = pooling == "mean"                                ? Pooling::kMean
                          : pooling == "last" || (!pooling && !is_encoder) ? Pooling::kLast
                                                                           : Pooling::kFirst;
    if (file_.find("cls.weight") != nullptr) {
      CANDOR_ASSIGN(const auto act, formats::meta_string(file_, "candor.text.label_activation"));
      CANDOR_ASSIGN(const LayerAct kind, act_of(act.value_or("tanh")));
      CANDOR_ASSIGN(VectorLayer layer, layer_of("cls", spec_.dim, kind));
      CANDOR_ASSIGN(layer.gain, vector_of("cls.norm.weight", layer.n_out));
      layer.epsilon = spec_.final_norm.epsilon;
      head_.label_layers.push_back(std::move(layer));
    }
    const int64_t n_in = head_.label_layers.empty() ? spec_.dim : head_.label_layers.back().n_out;
    CANDOR_ASSIGN(VectorLayer output, layer_of("cls.output", n_in, LayerAct::kNone));
    CANDOR_TRY(name_labels(output.n_out));
    head_.label_layers.push_back(std::move(output));
    return {};
  }

  Result<void> name_labels(int32_t n) {
    CANDOR_ASSIGN(const auto* names, formats::meta_strings(file_, key("classifier.output_labels")));
    if (names != nullptr && names->size() != static_cast<size_t>(n)) {
      return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\": {} labels; expected {}, as the head has "
                                                        "outputs",
                                                        key("classifier.output_labels"), names->size(), n));
    }
    for (int32_t i = 0; i < n; ++i) {
      head_.labels.push_back(names == nullptr ? fmt::format("LABEL_{}", i)
                                              : std::string((*names)[static_cast<size_t>(i)]));
    }
    return {};
  }

  Result<void> read_prompts() {
    CANDOR_ASSIGN(const auto* names, formats::meta_strings(file_, "candor.text.prompt_names"));
    CANDOR_ASSIGN(const auto* texts, formats::meta_strings(file_, "candor.text.prompt_texts"));
    CANDOR_ASSIGN(const auto chosen, formats::meta_string(file_, "candor.text.default_prompt"));
    if (chosen) head_.default_prompt = *chosen;
    if (names == nullptr || texts == nullptr || names->size() != texts->size()) return {};
    for (size_t i = 0; i < names->size(); ++i) {
      head_.prompts.push_back({std::string((*names)[i]), std::string((*texts)[i])});
    }
    return {};
  }

  const formats::ModelFile& file_;
  const ArchSpec& spec_;
  TextHead head_;
};

}  // namespace

std::span<const std::string_view> text_head_tensors() {
  static constexpr std::string_view kNames[] = {"cls.weight",        "cls.bias",        "cls.norm.weight",
                                                "cls.output.weight", "cls.output.bias", "dense_2.weight",
                                                "dense_2.bias",      "dense_3.weight",  "dense_3.bias"};
  return kNames;
}

Result<TextHead> read_text_head(const formats::ModelFile& file, const ArchSpec& spec) {
  return HeadReader(file, spec).read();
}

std::vector<float> run_layers(std::span<const VectorLayer> layers, std::span<const float> vector) {
  std::vector<float> values(vector.begin(), vector.end());
  for (const VectorLayer& layer : layers) values = run_layer(layer, values);
  return values;
}

void normalise(std::span<float> vector) {
  double square = 0.0;
  for (const float x : vector) square += static_cast<double>(x) * static_cast<double>(x);
  const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
  for (float& x : vector) x = static_cast<float>(static_cast<double>(x) * scale);
}

}  // namespace candor::model
