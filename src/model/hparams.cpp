#include "model/hparams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <variant>

#include "base/rounded_math.h"
#include "formats/quote.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

Error out_of_range(const std::string& key, int64_t value, Hparams::IntRange range) {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}; expected {} to {}: the file is damaged or "
                          "was converted wrongly",
                          key, value, range.min, range.max));
}

Result<double> check_positive(const std::string& key, double value) {
  if (std::isfinite(value) && value > 0.0) return value;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}; expected a finite number above 0", key, value));
}

Result<int32_t> read_head_dim(const Hparams& hparams, int32_t dim, int32_t n_heads) {
  if (!hparams.has("attention.key_length") && dim % n_heads != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" is {}, which does not divide the embedding length {}, and \"{}\" is "
                            "absent",
                            hparams.key("attention.head_count"), n_heads, dim, hparams.key("attention.key_length")));
  }
  const Hparams::IntRange range{2, kMaxWidth / n_heads};
  CANDOR_ASSIGN(const int32_t key_length, hparams.int_or("attention.key_length", dim / n_heads, range));
  CANDOR_ASSIGN(const int32_t value_length, hparams.int_or("attention.value_length", key_length, range));
  if (value_length != key_length) {
    return fail(ErrorKind::kUnsupported, fmt::format("metadata key \"{}\" is {} and \"{}\" is {}: heads whose keys and "
                                                     "values differ in width are not supported",
                                                     hparams.key("attention.key_length"), key_length,
                                                     hparams.key("attention.value_length"), value_length));
  }
  if (key_length % 2 != 0 || key_length < range.min || key_length > range.max) {
    return fail(ErrorKind::kInvalidInput, fmt::format("heads of width {} (embedding length {}, {} heads); expected an "
                                                      "even width of {} to {}",
                                                      key_length, dim, n_heads, range.min, range.max));
  }
  return key_length;
}

// "rope.scaling.factor", or the older "rope.scale_linear", which says the same.
Result<double> read_scaling_factor(const Hparams& hparams) {
  if (hparams.has("rope.scaling.factor")) return hparams.positive_or("rope.scaling.factor", 1.0);
  return hparams.positive_or("rope.scale_linear", 1.0);
}

Result<void> read_yarn(const Hparams& hparams, backend::RopeSpec& rope) {
  CANDOR_ASSIGN(rope.beta_fast, hparams.positive_or("rope.scaling.yarn_beta_fast", rope.beta_fast));
  CANDOR_ASSIGN(rope.beta_slow, hparams.positive_or("rope.scaling.yarn_beta_slow", rope.beta_slow));
  CANDOR_ASSIGN(const double factor, hparams.positive_or("rope.scaling.attn_factor", 1.0));
  rope.attention_factor = factor * (1.0 + 0.1 * rounded_log(rope.factor));
  CANDOR_ASSIGN(const auto truncates, formats::meta_bool(hparams.file(), hparams.key("rope.scaling.yarn_truncate")));
  rope.is_truncated = truncates.value_or(true);
  CANDOR_TRY(check_positive(hparams.key("rope.scaling.factor"), rope.attention_factor));
  return {};
}

Result<void> read_llama3(const Hparams& hparams, backend::RopeSpec& rope) {
  CANDOR_ASSIGN(rope.low_freq_factor, hparams.positive_or("rope.scaling.low_freq_factor", rope.low_freq_factor));
  CANDOR_ASSIGN(rope.high_freq_factor, hparams.positive_or("rope.scaling.high_freq_factor", rope.high_freq_factor));
  if (rope.high_freq_factor >= rope.low_freq_factor) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" is {}; expected at least \"{}\", which is {}",
                                                    hparams.key("rope.scaling.high_freq_factor"), rope.high_freq_factor,
                                                    hparams.key("rope.scaling.low_freq_factor"), rope.low_freq_factor));
}

Result<void> read_scaling(const Hparams& hparams, backend::RopeSpec& rope) {
  using backend::RopeScaling;
  CANDOR_ASSIGN(rope.factor, read_scaling_factor(hparams));
  const auto named = hparams.string_or("rope.scaling.type", rope.factor == 1.0 ? "none" : "linear");
  if (!named) return named.error();
  const std::string_view type = *named;
  if (type == "none") {
    rope.factor = 1.0;
    return {};
  }
  rope.scaling = type == "yarn" ? RopeScaling::kYarn : type == "llama3" ? RopeScaling::kLlama3 : RopeScaling::kLinear;
  if (type == "linear") return {};
  if (rope.scaling == RopeScaling::kLinear) {
    return fail(ErrorKind::kUnsupported, fmt::format("metadata key \"{}\" is {}; supported: none, linear, yarn, llama3",
                                                     hparams.key("rope.scaling.type"), formats::in_quotes(type)));
  }
  CANDOR_ASSIGN(const int32_t context, hparams.require_int("context_length", {1, kMaxPositions}));
  CANDOR_ASSIGN(rope.original_positions,
                hparams.int_or("rope.scaling.original_context_length", context, {1, kMaxPositions}));
  return rope.scaling == RopeScaling::kYarn ? read_yarn(hparams, rope) : read_llama3(hparams, rope);
}

bool is_zero(const formats::MetaValue& value) {
  if (const int64_t* number = std::get_if<int64_t>(&value)) return *number == 0;
  if (const uint64_t* number = std::get_if<uint64_t>(&value)) return *number == 0;
  if (const double* number = std::get_if<double>(&value)) return *number == 0.0;
  if (const bool* flag = std::get_if<bool>(&value)) return !*flag;
  return false;
}

}  // namespace

Result<int32_t> Hparams::require_int(std::string_view suffix, IntRange range) const {
  return formats::require_int(file_, key(suffix), range.min, range.max);
}

Result<int32_t> Hparams::int_or(std::string_view suffix, int32_t fallback, IntRange range) const {
  return has(suffix) ? require_int(suffix, range) : fallback;
}

Result<double> Hparams::positive_or(std::string_view suffix, double fallback) const {
  CANDOR_ASSIGN(const std::optional<double> value, formats::meta_float(file_, key(suffix)));
  return value ? check_positive(key(suffix), *value) : fallback;
}

Result<double> Hparams::require_positive(std::string_view suffix) const {
  if (has(suffix)) return positive_or(suffix, 0.0);
  return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" is absent; the model needs it", key(suffix)));
}

Result<std::string> Hparams::string_or(std::string_view suffix, std::string_view fallback) const {
  CANDOR_ASSIGN(const std::optional<std::string_view> value, formats::meta_string(file_, key(suffix)));
  return std::string(value.value_or(fallback));
}

Result<std::vector<int32_t>> Hparams::per_layer(std::string_view suffix, int32_t n_layers, IntRange range) const {
  const formats::MetaValue* value = file_.meta(key(suffix));
  if (value == nullptr || !std::holds_alternative<formats::MetaArray>(*value)) {
    CANDOR_ASSIGN(const int32_t number, require_int(suffix, range));
    return std::vector<int32_t>(static_cast<size_t>(n_layers), number);
  }
  CANDOR_ASSIGN(const std::vector<int64_t>* numbers, formats::meta_ints(file_, key(suffix)));
  if (numbers == nullptr || numbers->size() != static_cast<size_t>(n_layers)) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" has {} entries; expected {}, one for each block", key(suffix),
                            numbers == nullptr ? 0 : numbers->size(), n_layers));
  }
  std::vector<int32_t> result;
  for (const int64_t number : *numbers) {
    if (number < range.min || number > range.max) return out_of_range(key(suffix), number, range);
    result.push_back(static_cast<int32_t>(number));
  }
  return result;
}

Result<int32_t> Hparams::uniform(std::string_view suffix, int32_t n_layers, IntRange range) const {
  CANDOR_ASSIGN(const std::vector<int32_t> numbers, per_layer(suffix, n_layers, range));
  const auto other = std::find_if(numbers.begin(), numbers.end(), [&](int32_t n) { return n != numbers.front(); });
  if (other == numbers.end()) return numbers.front();
  return fail(ErrorKind::kUnsupported,
              fmt::format("metadata key \"{}\" is {} in block 0 and {} in block {}: blocks that differ in it are not "
                          "supported",
                          key(suffix), numbers.front(), *other, other - numbers.begin()));
}

Result<void> Hparams::refuse_unless_zero(std::initializer_list<std::string_view> suffixes) const {
  for (const std::string_view suffix : suffixes) {
    const formats::MetaValue* value = file_.meta(key(suffix));
    if (value == nullptr || is_zero(*value)) continue;
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("metadata key \"{}\" is set: {} models that use it are not supported", key(suffix), prefix_));
  }
  return {};
}

namespace {

Result<backend::AttnSpec> complete_attention(const Hparams& hparams, int32_t dim, backend::AttnSpec attn) {
  if (attn.n_heads % attn.n_kv_heads != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" is {}, which does not divide \"{}\", which is {}",
                            hparams.key("attention.head_count_kv"), attn.n_kv_heads,
                            hparams.key("attention.head_count"), attn.n_heads));
  }
  CANDOR_ASSIGN(attn.head_dim, read_head_dim(hparams, dim, attn.n_heads));
  CANDOR_ASSIGN(const double scale, hparams.positive_or("attention.scale", 1.0 / std::sqrt(attn.head_dim)));
  attn.scale = static_cast<float>(scale);
  CANDOR_ASSIGN(attn.window_tokens, hparams.int_or("attention.sliding_window", 0, {0, INT32_MAX}));
  CANDOR_ASSIGN(attn.rope, read_rope(hparams, attn.head_dim));
  return attn;
}

}  // namespace

Result<backend::AttnSpec> read_attention(const Hparams& hparams, int32_t dim, int32_t n_layers) {
  backend::AttnSpec attn;
  CANDOR_ASSIGN(attn.n_heads, hparams.uniform("attention.head_count", n_layers, {1, kMaxWidth / 2}));
  attn.n_kv_heads = attn.n_heads;
  if (hparams.has("attention.head_count_kv")) {
    CANDOR_ASSIGN(attn.n_kv_heads, hparams.uniform("attention.head_count_kv", n_layers, {1, attn.n_heads}));
  }
  return complete_attention(hparams, dim, attn);
}

Result<backend::AttnSpec> read_attention_of_some(const Hparams& hparams, int32_t dim, int32_t n_layers) {
  constexpr std::string_view kKey = "attention.head_count_kv";
  backend::AttnSpec attn;
  CANDOR_ASSIGN(attn.n_heads, hparams.uniform("attention.head_count", n_layers, {1, kMaxWidth / 2}));
  CANDOR_ASSIGN(const std::vector<int32_t> counts, hparams.per_layer(kKey, n_layers, {0, attn.n_heads}));
  for (const int32_t count : counts) {
    if (count != 0 && attn.n_kv_heads != 0 && count != attn.n_kv_heads) {
      return fail(ErrorKind::kUnsupported,
                  fmt::format("metadata key \"{}\" is {} in one block and {} in another: blocks that differ in it are "
                              "not supported",
                              hparams.key(kKey), attn.n_kv_heads, count));
    }
    if (count != 0) attn.n_kv_heads = count;
  }
  if (attn.n_kv_heads == 0) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"{}\" is 0 in every block: expected some that attend", hparams.key(kKey)));
  }
  return complete_attention(hparams, dim, attn);
}

Result<backend::RopeSpec> read_rope(const Hparams& hparams, int32_t head_dim) {
  backend::RopeSpec rope;
  CANDOR_ASSIGN(rope.n_dims, hparams.int_or("rope.dimension_count", head_dim, {0, head_dim}));
  if (rope.n_dims % 2 != 0) {
    return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" is {}; expected an even number",
                                                      hparams.key("rope.dimension_count"), rope.n_dims));
  }
  CANDOR_ASSIGN(rope.base, hparams.positive_or("rope.freq_base", rope.base));
  if (rope.base <= 1.0) {
    return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" is {}; expected a number above 1",
                                                      hparams.key("rope.freq_base"), rope.base));
  }
  CANDOR_TRY(read_scaling(hparams, rope));
  CANDOR_ASSIGN(rope.frequency_factors, read_frequency_factors(hparams.file(), "rope_freqs.weight", rope.n_dims));
  return rope;
}

Result<void> read_rope_axes(const Hparams& hparams, bool are_interleaved, backend::RopeSpec& rope) {
  const std::string key = hparams.key("rope.dimension_sections");
  CANDOR_ASSIGN(const std::vector<int64_t>* sections, formats::meta_ints(hparams.file(), key));
  if (sections == nullptr) return {};
  constexpr size_t kAxes = 3;
  const auto n_pairs = static_cast<int64_t>(rope.n_dims / 2);
  const auto is_count = [](int64_t n) { return n >= 0 && n <= kMaxWidth; };
  const bool are_counts = sections->size() >= kAxes && std::ranges::all_of(*sections, is_count);
  if (!are_counts || (!are_interleaved && std::accumulate(sections->begin(), sections->end(), int64_t{0}) != n_pairs)) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("metadata key \"{}\": expected the numbers of pairs that turn by time, height and width, of "
                    "{} in all",
                    key, n_pairs));
  }
  const int64_t n_time = (*sections)[0];
  for (int64_t pair = 0; pair < n_pairs; ++pair) {
    const int64_t turn = pair % 3;
    const bool is_by_turns = turn > 0 && pair < 3 * (*sections)[static_cast<size_t>(turn)];
    const int64_t in_order = pair < n_time ? 0 : pair < n_time + (*sections)[1] ? 1 : 2;
    rope.axes.push_back(static_cast<uint8_t>(are_interleaved ? (is_by_turns ? turn : 0) : in_order));
  }
  return {};
}

Result<std::vector<float>> read_frequency_factors(const formats::ModelFile& file, std::string_view name,
                                                  int32_t n_dims) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) return std::vector<float>{};
  const Shape expected{1, {n_dims / 2}};
  if (tensor->dtype != DType::kF32 || tensor->shape != expected) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor \"{}\": {} {}; expected F32 {}", name, dtype_info(tensor->dtype).name,
                            to_string(tensor->shape), to_string(expected)));
  }
  std::vector<float> factors(static_cast<size_t>(n_dims / 2));
  decode_row(*tensor, 0, factors.data());
  for (const float factor : factors) {
    if (std::isfinite(factor) && factor > 0.0f) continue;
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor \"{}\" holds {}; expected finite numbers above 0", name, factor));
  }
  return factors;
}

Result<int32_t> read_vocab(const Hparams& hparams) {
  const TensorView* embedding = hparams.file().find("token_embd.weight");
  if (embedding == nullptr) {
    return fail(ErrorKind::kInvalidInput,
                "tensor \"token_embd.weight\" is missing: the file holds no language model, or "
                "only its vocabulary");
  }
  const int64_t n_rows = embedding->shape.n_dims == 2 ? embedding->shape[0] : 0;
  if (n_rows < 1 || n_rows > kMaxVocab) {
    return fail(ErrorKind::kInvalidInput, fmt::format("tensor \"token_embd.weight\": shape {}; expected [vocabulary, "
                                                      "embedding length] with 1 to {} rows",
                                                      to_string(embedding->shape), kMaxVocab));
  }
  const int32_t vocab = static_cast<int32_t>(n_rows);
  CANDOR_ASSIGN(const int32_t stated, hparams.int_or("vocab_size", vocab, {1, kMaxVocab}));
  if (stated == vocab) return vocab;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"token_embd.weight\" has {} rows; metadata key \"{}\" says {}", vocab,
                          hparams.key("vocab_size"), stated));
}

}  // namespace candor::model
