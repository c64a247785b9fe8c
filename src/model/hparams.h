#pragma once
// Hyperparameters of one architecture, read from a file's metadata with their limits. Keys are "<prefix>.<suffix>", as
// in "llama.block_count". Every number that leaves this reader is finite and within the range that was asked for, so
// that sizes made of them cannot overflow. Borrows the file.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "backend/op_specs.h"
#include "base/error.h"
#include "formats/model_file.h"

namespace candor::model {

// Far above any published model; a product of two of them fits 64 bits with room.
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxWidth = int64_t{1} << 20;  // dim, ffn_dim, n_heads * head_dim
inline constexpr int32_t kMaxExperts = 65536;
inline constexpr int32_t kMaxExpertsUsed = 1024;  // of a row; times a width fits 32 bits
inline constexpr int64_t kMaxVocab = int64_t{1} << 21;
inline constexpr int64_t kMaxPositions = int64_t{1} << 26;

class Hparams {
 public:
  struct IntRange {
    int64_t min;
    int64_t max;
  };

  Hparams(const formats::ModelFile& file, std::string_view prefix) : file_(file), prefix_(prefix) {}

  const formats::ModelFile& file() const { return file_; }
  const std::string& prefix() const { return prefix_; }
  std::string key(std::string_view suffix) const { return prefix_ + "." + std::string(suffix); }
  bool has(std::string_view suffix) const { return file_.meta(key(suffix)) != nullptr; }

  Result<int32_t> require_int(std::string_view suffix, IntRange range) const;
  Result<int32_t> int_or(std::string_view suffix, int32_t fallback, IntRange range) const;
  // Finite and > 0.
  Result<double> positive_or(std::string_view suffix, double fallback) const;
  Result<double> require_positive(std::string_view suffix) const;
  Result<std::string> string_or(std::string_view suffix, std::string_view fallback) const;

  // [n_layers]: from a number, which holds for every layer, or from an array of one number for each layer.
  Result<std::vector<int32_t>> per_layer(std::string_view suffix, int32_t n_layers, IntRange range) const;
  // As per_layer, where layers that differ are refused.
  Result<int32_t> uniform(std::string_view suffix, int32_t n_layers, IntRange range) const;

  // Refuses, by name, keys that would change the arithmetic in ways that the family does not offer. Absent, zero and
  // false are fine.
  Result<void> refuse_unless_zero(std::initializer_list<std::string_view> suffixes) const;

 private:
  const formats::ModelFile& file_;
  std::string prefix_;
};

// Head counts, head width, scale, window and rotation, from the keys that most families share. dim: D, already checked.
Result<backend::AttnSpec> read_attention(const Hparams& hparams, int32_t dim, int32_t n_layers);
// The same of the blocks that attend: "attention.head_count_kv" is 0 in others.
Result<backend::AttnSpec> read_attention_of_some(const Hparams& hparams, int32_t dim, int32_t n_layers);

// Rotation of heads of head_dim: base, rotated dimensions, scaling, and the file's "rope_freqs.weight".
Result<backend::RopeSpec> read_rope(const Hparams& hparams, int32_t head_dim);

// Which of a row's positions turns each pair (RopeSpec::axes): from "rope.dimension_sections", pairs by time, height
// and width; by turns where they are interleaved, else one after another. Nothing where the key is absent.
Result<void> read_rope_axes(const Hparams& hparams, bool are_interleaved, backend::RopeSpec& rope);

// The divisors of each pair's frequency that a file keeps as a tensor; empty where it is absent.
Result<std::vector<float>> read_frequency_factors(const formats::ModelFile& file, std::string_view name,
                                                  int32_t n_dims);

// Rows of "token_embd.weight", which "<prefix>.vocab_size" must repeat where it stands.
Result<int32_t> read_vocab(const Hparams& hparams);

}  // namespace candor::model
