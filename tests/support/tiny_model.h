#pragma once
// Small random Llama models for tests: any width, weight type and rotary scaling, the same on every machine.
//
// Weight i of tensor number t (in the order of tiny_tensors()) is an exact f32 made of integers alone, so that
// tests/golden/reference_llama.py makes the same: z = mix64((seed * 1000 + t) * 2^32 + i), u = (z >> 40) - 2^23,
// w = u * 2^-23 * amplitude, where mix64 is the splitmix64 finaliser and amplitude a power of two: 2^-2 for the
// embedding and the head, the largest power of two up to 1.5 / sqrt(in) for projections; norm gains are
// 1 + u * 2^-23 * 2^-2; biases 2^-3. Then they are encoded as `dtype` (vectors stay F32).

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/memory_model_file.h"

namespace candor::testing {

struct TinyModelOptions {
  int32_t dim = 64;
  int32_t n_layers = 2;
  int32_t n_heads = 4;
  int32_t n_kv_heads = 2;
  int32_t head_dim = 16;
  int32_t ffn_dim = 96;
  int32_t vocab = 96;  // 259 and more: a byte-fallback SentencePiece vocabulary comes with the model
  int32_t context_tokens = 512;
  DType dtype = DType::kF32;  // of the matrices; a row must be a multiple of its block
  DType embedding_dtype = DType::kF32;
  bool is_tied = false;
  bool has_biases = false;
  int32_t window_tokens = 0;
  double rope_base = 10000.0;
  std::vector<float> rope_factors = {};             // "rope_freqs.weight", [head_dim / 2], or empty
  std::vector<formats::MetaEntry> extra_keys = {};  // strings: literals
  uint64_t seed = 1;
};

struct TinyTensor {
  std::string name;
  Shape shape;
};

// Every tensor of the model except rope_freqs.weight, in the file's order.
std::vector<TinyTensor> tiny_tensors(const TinyModelOptions& options);

std::unique_ptr<MemoryModelFile> make_tiny_model(const TinyModelOptions& options);

// As a GGUF file; a file that stands there is replaced. Numbers that fit are written as u32, i32 and f32.
Result<void> write_model(const formats::ModelFile& file, const std::filesystem::path& path);

// n_heads of head_dim over `dim` columns of `dtype` for matrices and embedding, 2 layers, tokenizer included: what the
// invariance and accuracy tests use.
TinyModelOptions tiny_model_of(DType dtype, int32_t head_dim, int32_t dim = 512);

}  // namespace candor::testing
