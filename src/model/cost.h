#pragma once
// Estimates the cost of inference: operations, bytes and times, from a model's size and a machine's peak arithmetic
// rate and memory bandwidth. Prefill is bound by arithmetic, decode by reading the weights once a token. Pure functions
// of doubles, so that published model sizes need no file.

#include <span>
#include <string_view>

namespace candor::model {

// A machine by its published peak (dense, at the named precision) and memory bandwidth.
struct Hardware {
  std::string_view name;
  std::string_view description;
  double flops = 0;  // operations a second
  double bytes_per_s = 0;
  std::string_view source;
  double memory_bytes = 0;     // 0 = unknown
  double attention_flops = 0;  // where attention is computed in another precision; 0 = as the rest
  // Of NVIDIA's GPUs, what this program's kernels are bound by there: integers on tensor cores, dense, and
  // multiply-adds of floats (docs/gpu.md). 0: no such GPU.
  double int8_ops = 0;
  double f32_flops = 0;
};

// "a100", "h100", "h200", "l4", "l40s", "rtx4090", "rtx5090", "m1-ultra", "inferentia2", "tpu-v5e".
std::span<const Hardware> known_hardware();
// nullptr for an unknown name.
const Hardware* find_hardware(std::string_view name);

double weight_bytes_at(double n_parameters, double bits_per_weight);

struct KvShape {
  double n_layers = 0;
  double n_kv_heads = 0;
  double head_dim = 0;
  double element_bytes = 2;
  double n_planes = 2;  // keys and values; 1 of latents, which are both
};
// planes x layers x heads x width x bytes, for one token.
double kv_bytes_per_token(const KvShape& shape);

double memory_seconds(double bytes, const Hardware& hardware);

// Whole answer: time to the first token, then every further one at the inter-token latency.
double answer_ms(double ttft_ms, double itl_ms, double n_tokens);

// How many times more tokens are projected to K and V without a cache than with one, over n_new tokens after a
// context of n_context.
double projection_savings(double n_context, double n_new);

double price_per_token(double price_per_hour, double tokens_per_s);

}  // namespace candor::model
