#include "model/text_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include "formats/quote.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

constexpr int64_t kMostOutputs = 1 << 20;

class HeadReader {
 public:
  HeadReader(const formats::ModelFile& file, const ArchSpec& spec) : file_(file), spec_(spec) {}

  Result<TextHead> read() {
    CANDOR_TRY(read_pooling());
    CANDOR_TRY(read_dense());
    CANDOR_TRY(read_token_heads());
    CANDOR_TRY(read_word_pooling());
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

  // Of a model that has several kinds of vectors at once.
  Result<void> read_token_heads() {
    if (file_.find("sparse.weight") != nullptr) {
      CANDOR_ASSIGN(VectorLayer layer, layer_of("sparse", spec_.dim, LayerAct::kRelu));
      if (layer.n_out != 1) return bad("sparse.weight", fmt::format("{} rows; expected one", layer.n_out));
      head_.sparse.of_token.push_back(std::move(layer));
    }
    if (file_.find("colbert.weight") == nullptr) return {};
    CANDOR_ASSIGN(VectorLayer layer, layer_of("colbert", spec_.dim, LayerAct::kNone));
    head_.colbert.push_back(std::move(layer));
    return {};
  }

  Result<void> read_word_pooling() {
    CANDOR_ASSIGN(const auto pooling, formats::meta_string(file_, "candor.text.word_pooling"));
    if (!pooling) return {};
    CANDOR_ASSIGN(const auto n_logs, formats::meta_int(file_, "candor.text.word_logs"));
    if ((pooling != "max" && pooling != "sum") || n_logs.value_or(1) < 1 || n_logs.value_or(1) > 2) {
      return fail(ErrorKind::kUnsupported,
                  "metadata key \"candor.text.word_pooling\": expected max or sum, of 1 or 2 "
                  "logarithms");
    }
    if (spec_.head.is_absent) {
      return fail(ErrorKind::kInvalidInput,
                  "the model weighs words (SPLADE), but its files hold no head that guesses "
                  "words: tensor \"mlm.weight\" is missing");
    }
    head_.sparse.of_logits = true;
    head_.sparse.adds = pooling == "sum";
    head_.sparse.n_logs = static_cast<int32_t>(n_logs.value_or(1));
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
  static constexpr std::string_view kNames[] = {
      "cls.weight",     "cls.bias",       "cls.norm.weight", "cls.output.weight", "cls.output.bias",
      "dense_2.weight", "dense_2.bias",   "dense_3.weight",  "dense_3.bias",      "sparse.weight",
      "sparse.bias",    "colbert.weight", "colbert.bias"};
  return kNames;
}

Result<TextHead> read_text_head(const formats::ModelFile& file, const ArchSpec& spec) {
  return HeadReader(file, spec).read();
}

}  // namespace candor::model
