#include "support/tiny_model.h"

#include <array>
#include <cmath>
#include <span>

#include "tensor/encode.h"

namespace candor::testing {
namespace {

uint64_t splitmix64(uint64_t counter) {
  uint64_t z = counter * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

bool is_embedding(std::string_view name) {
  return name == "token_embd.weight" || name == "output.weight";
}

// Of the uniform part of a tensor's values.
double amplitude_of(const TinyTensor& tensor) {
  if (is_embedding(tensor.name) || tensor.name.ends_with("norm.weight")) return 0.25;
  if (tensor.name.ends_with(".bias")) return 0.125;
  return std::exp2(std::floor(std::log2(1.5 / std::sqrt(static_cast<double>(tensor.shape.row_elements())))));
}

std::vector<float> values_of(const TinyTensor& tensor, uint64_t seed, uint64_t number) {
  const double amplitude = amplitude_of(tensor);
  const double centre = tensor.name.ends_with("norm.weight") ? 1.0 : 0.0;
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t word = splitmix64(((seed * 1000 + number) << 32) + i) >> 40;
    const double unit = (static_cast<double>(word) - 0x1p23) * 0x1p-23;
    values[i] = static_cast<float>(centre + unit * amplitude);
  }
  return values;
}

std::vector<std::byte> encode(DType dtype, const Shape& shape, std::span<const float> values) {
  std::vector<std::byte> data(*tensor_bytes_of(dtype, shape));
  encode_rows(dtype, values.data(), shape.n_rows(), shape.row_elements(), data.data());
  return data;
}

DType dtype_of(const TinyTensor& tensor, const TinyModelOptions& options) {
  if (tensor.shape.n_dims == 1) return DType::kF32;
  return is_embedding(tensor.name) ? options.embedding_dtype : options.dtype;
}

void set_hyperparameters(MemoryModelFile& file, const TinyModelOptions& options) {
  file.set("general.architecture", std::string_view("llama"));
  file.set("general.name", std::string_view("tiny"));
  const auto set_count = [&](const char* key, int32_t value) { file.set(key, uint64_t{static_cast<uint32_t>(value)}); };
  set_count("llama.block_count", options.n_layers);
  set_count("llama.context_length", options.context_tokens);
  set_count("llama.embedding_length", options.dim);
  set_count("llama.feed_forward_length", options.ffn_dim);
  set_count("llama.attention.head_count", options.n_heads);
  set_count("llama.attention.head_count_kv", options.n_kv_heads);
  set_count("llama.attention.key_length", options.head_dim);
  set_count("llama.attention.value_length", options.head_dim);
  set_count("llama.rope.dimension_count", options.head_dim);
  file.set("llama.rope.freq_base", options.rope_base);
  file.set("llama.attention.layer_norm_rms_epsilon", 1e-5);
  if (options.window_tokens > 0) set_count("llama.attention.sliding_window", options.window_tokens);
}

constexpr int32_t kSpecials = 3;  // <unk>, <s>, </s>
constexpr int32_t kBytes = 256;

// <unk>, <s>, </s>, the 256 bytes, then one piece for each letter and for pairs of letters.
void set_tokenizer(MemoryModelFile& file, int32_t vocab) {
  enum Kind : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };
  std::vector<std::string_view> pieces = {"<unk>", "<s>", "</s>"};
  std::vector<int64_t> kinds = {kUnknown, kControl, kControl};
  for (int32_t byte = 0; byte < kBytes; ++byte) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const size_t high = static_cast<size_t>(byte / 16);
    const size_t low = static_cast<size_t>(byte % 16);
    pieces.push_back(file.keep(std::string("<0x") + kHex[high] + kHex[low] + ">"));
    kinds.push_back(kByte);
  }
  std::vector<double> scores(pieces.size(), 0.0);
  for (int32_t i = 0; kSpecials + kBytes + i < vocab; ++i) {
    std::string piece(1, static_cast<char>('a' + i % 26));
    for (int32_t rest = i / 26; rest > 0; rest /= 26) piece += static_cast<char>('a' + rest % 26);
    pieces.push_back(file.keep(i < 1 ? "\xe2\x96\x81" : piece));
    kinds.push_back(kNormal);
    scores.push_back(-static_cast<double>(i));
  }
  file.set("tokenizer.ggml.model", std::string_view("llama"));
  file.set("tokenizer.ggml.tokens", formats::MetaArray(pieces));
  file.set("tokenizer.ggml.scores", formats::MetaArray(scores));
  file.set("tokenizer.ggml.token_type", formats::MetaArray(kinds));
  file.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  file.set("tokenizer.ggml.bos_token_id", uint64_t{1});
  file.set("tokenizer.ggml.eos_token_id", uint64_t{2});
}

Shape matrix(int32_t rows, int32_t cols) {
  return {2, {rows, cols}};
}
Shape vector(int32_t n) {
  return {1, {n}};
}

void append_block(std::vector<TinyTensor>& tensors, const TinyModelOptions& options, int32_t layer) {
  struct Row {
    const char* name;
    int32_t rows;
    int32_t cols;
  };
  const int32_t heads = options.n_heads * options.head_dim;
  const int32_t kv = options.n_kv_heads * options.head_dim;
  const int32_t dim = options.dim;
  const int32_t ffn = options.ffn_dim;
  const std::array<Row, 7> projections = {{{"attn_q", heads, dim},
                                           {"attn_k", kv, dim},
                                           {"attn_v", kv, dim},
                                           {"attn_output", dim, heads},
                                           {"ffn_gate", ffn, dim},
                                           {"ffn_up", ffn, dim},
                                           {"ffn_down", dim, ffn}}};
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  tensors.push_back({prefix + "attn_norm.weight", vector(dim)});
  tensors.push_back({prefix + "ffn_norm.weight", vector(dim)});
  for (const Row& row : projections) {
    tensors.push_back({prefix + row.name + ".weight", matrix(row.rows, row.cols)});
    if (options.has_biases) tensors.push_back({prefix + row.name + ".bias", vector(row.rows)});
  }
}

}  // namespace

std::vector<TinyTensor> tiny_tensors(const TinyModelOptions& options) {
  std::vector<TinyTensor> tensors = {{"token_embd.weight", matrix(options.vocab, options.dim)},
                                     {"output_norm.weight", vector(options.dim)}};
  if (!options.is_tied) tensors.push_back({"output.weight", matrix(options.vocab, options.dim)});
  for (int32_t layer = 0; layer < options.n_layers; ++layer) append_block(tensors, options, layer);
  return tensors;
}

std::unique_ptr<MemoryModelFile> make_tiny_model(const TinyModelOptions& options) {
  auto file = std::make_unique<MemoryModelFile>();
  set_hyperparameters(*file, options);
  if (options.vocab >= kSpecials + kBytes) set_tokenizer(*file, options.vocab);
  for (const formats::MetaEntry& entry : options.extra_keys) file->set(entry.key, entry.value);
  uint64_t number = 0;
  for (const TinyTensor& tensor : tiny_tensors(options)) {
    const DType dtype = dtype_of(tensor, options);
    const std::vector<float> values = values_of(tensor, options.seed, number++);
    file->add_tensor(tensor.name, dtype, tensor.shape, encode(dtype, tensor.shape, values));
  }
  if (!options.rope_factors.empty()) {
    const Shape shape = vector(static_cast<int32_t>(options.rope_factors.size()));
    file->add_tensor("rope_freqs.weight", DType::kF32, shape, encode(DType::kF32, shape, options.rope_factors));
  }
  return file;
}

TinyModelOptions tiny_model_of(DType dtype, int32_t head_dim, int32_t dim) {
  // Heads times head_dim is a column count too: 16 heads of 80 make 1280, a multiple of every block.
  TinyModelOptions options;
  options.dim = dim;
  options.head_dim = head_dim;
  options.n_heads = head_dim == 80 ? 16 : dim / head_dim;
  options.n_kv_heads = options.n_heads / 4 == 0 ? 1 : options.n_heads / 4;
  options.ffn_dim = 2 * dim;
  options.vocab = 384;
  options.dtype = dtype;
  options.embedding_dtype = dtype;
  return options;
}

}  // namespace candor::testing
