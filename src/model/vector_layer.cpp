#include "model/vector_layer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rounded_math.h"

namespace candor::model {
namespace {

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

}  // namespace

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
