#pragma once
// What `candor estimate` was asked for, as it was typed.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace candor::apps {

struct EstimateOptions {
  std::optional<std::string> model, mmproj, like, image;
  std::vector<std::string> positionals;
  std::optional<double> parameters, bits, flops, bandwidth, memory_gb, efficiency, overhead_ms, price, latency_us;
  std::optional<int64_t> layers, heads, kv_heads, head_dim, n_prompt, n_new, n_batch, n_threads, n_ranks;
  std::string hardware = "this", device = "cpu", link = "shm";
  bool measures = false, json = false;

  int64_t n_image_rows = 0;  // of the prompt, beside its text

  double prompt_tokens() const { return static_cast<double>(n_prompt.value_or(512) + n_image_rows); }
  double new_tokens() const { return static_cast<double>(n_new.value_or(128)); }
  double sequences() const { return static_cast<double>(n_batch.value_or(1)); }
};

}  // namespace candor::apps
