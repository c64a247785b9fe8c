#pragma once
// A small transformer made of random weights, written against the device seam alone: two layers with everything that a
// Llama-like block does. For comparing a backend with itself and with another.

#include <vector>

#include "conformance/rig.h"

namespace candor::testing {

struct MiniShape {
  DType dtype = DType::kF32;
  int32_t dim = 256;
  int32_t n_heads = 4;
  int32_t n_kv_heads = 2;
  int32_t head_dim = 64;
  int32_t ffn_dim = 512;
  int32_t vocab = 90;
};

class MiniModel {
 public:
  MiniModel(Rig rig, const MiniShape& shape);

  // How the tokens of the prompts are cut into steps.
  struct Plan {
    int32_t chunk_rows = 1 << 20;  // of one sequence in one step
    bool together = true;          // sequences share steps, else one after another
    bool reversed = false;         // the order of sequences in a step
  };
  // Logits of every position of every prompt: [prompt][length * vocab].
  std::vector<std::vector<float>> logits(const std::vector<std::vector<TokenId>>& prompts, const Plan& plan);

 private:
  struct Layer {
    const backend::Weight *attn_norm, *q, *k, *v, *q_bias, *out, *ffn_norm, *gate, *up, *down;
  };
  struct Running;

  void reserve_arena(int32_t n_rows);
  void step(const std::vector<std::vector<TokenId>>& prompts, std::vector<Running>& running, int32_t chunk);
  backend::Activation forward(int32_t n_rows);
  void block(const Layer& layer, int32_t index, int32_t n_rows);
  const backend::Weight& matrix(int64_t n_out, int64_t n_in);
  const backend::Weight& vector(int64_t n);

  Rig rig_;
  MiniShape shape_;
  uint64_t seed_ = 100;
  const backend::Weight* table_ = nullptr;
  std::vector<Layer> layers_;
  const backend::Weight* final_norm_ = nullptr;
};

}  // namespace candor::testing
