#include "model/cost.h"

#include <algorithm>
#include <iterator>

namespace candor::model {
namespace {

constexpr Hardware kHardware[] = {
    {"a100", "NVIDIA A100 80 GB SXM, bf16", 312e12, 2.039e12, "NVIDIA A100 datasheet", 80e9, 0, 624e12, 19.5e12},
    {"h100", "NVIDIA H100 SXM, bf16", 989.4e12, 3.35e12, "NVIDIA H100 datasheet, dense", 80e9, 0, 1979e12, 67e12},
    {"h200", "NVIDIA H200 SXM, bf16", 989.4e12, 4.8e12, "NVIDIA H200 datasheet, dense", 141e9, 0, 1979e12, 67e12},
    {"l4", "NVIDIA L4, bf16", 121e12, 300e9, "NVIDIA L4 datasheet, dense", 24e9, 0, 242e12, 30.3e12},
    {"l40s", "NVIDIA L40S, bf16", 362e12, 864e9, "NVIDIA L40S datasheet, dense", 48e9, 0, 733e12, 91.6e12},
    {"rtx4090", "NVIDIA RTX 4090, fp16 with fp32 sums", 165.2e12, 1.008e12, "NVIDIA Ada whitepaper, dense", 24e9, 0,
     660.6e12, 82.6e12},
    {"rtx5090", "NVIDIA RTX 5090, fp16 with fp32 sums", 209.5e12, 1.792e12, "NVIDIA RTX Blackwell whitepaper, dense",
     32e9, 0, 838e12, 104.8e12},
    {"m1-ultra", "Apple M1 Ultra GPU, fp32", 21e12, 800e9, "Apple, announcement of March 2022", 128e9},
    {"inferentia2", "AWS Inferentia2 chip, bf16", 190e12, 820e9, "AWS Neuron documentation", 32e9},
    {"tpu-v5e", "Google TPU v5e chip, bf16", 197e12, 819e9, "Google Cloud TPU documentation", 16e9},
};

}  // namespace

std::span<const Hardware> known_hardware() {
  return kHardware;
}

const Hardware* find_hardware(std::string_view name) {
  const auto* found = std::ranges::find(kHardware, name, &Hardware::name);
  return found == std::end(kHardware) ? nullptr : found;
}

double weight_bytes_at(double n_parameters, double bits_per_weight) {
  return n_parameters * bits_per_weight / 8.0;
}

double kv_bytes_per_token(const KvShape& shape) {
  return shape.n_planes * shape.n_layers * shape.n_kv_heads * shape.head_dim * shape.element_bytes;
}

double memory_seconds(double bytes, const Hardware& hardware) {
  return bytes / hardware.bytes_per_s;
}

double answer_ms(double ttft_ms, double itl_ms, double n_tokens) {
  return ttft_ms + itl_ms * n_tokens;
}

double projection_savings(double n_context, double n_new) {
  const double without = n_context * n_new + n_new * (n_new - 1.0) / 2.0;
  return without / (n_context + n_new);
}

double price_per_token(double price_per_hour, double tokens_per_s) {
  return price_per_hour / 3600.0 / tokens_per_s;
}

}  // namespace candor::model
