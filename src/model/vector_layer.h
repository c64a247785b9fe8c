#pragma once
// Layers over one vector, of heads behind a text's hidden states. Small, and computed by the host: products in double,
// in the order that docs/numerics.md states. Any thread.

#include <cstdint>
#include <span>
#include <vector>

namespace candor::model {

enum class LayerAct : uint8_t { kNone, kTanh, kGelu, kRelu, kSilu };

// y = norm(act(W x + b)).
struct VectorLayer {
  int32_t n_in = 0;
  int32_t n_out = 0;
  std::vector<float> weight{};  // [n_out, n_in]
  std::vector<float> bias{};    // [n_out] or empty
  LayerAct act = LayerAct::kNone;
  std::vector<float> gain{};  // [n_out] of a LayerNorm without bias, or empty
  float epsilon = 0.0f;
};

// REQUIRES: vector.size() is the first layer's n_in.
std::vector<float> run_layers(std::span<const VectorLayer> layers, std::span<const float> vector);

// Brings the length to 1; zeros stay zeros. Squares are added in order, in double.
void normalise(std::span<float> vector);

}  // namespace candor::model
