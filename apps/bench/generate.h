#pragma once
// Prefill and decode measured on the model alone, without requests: rows in, logits out, the likeliest token back in.

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/bench/bare_model.h"
#include "backend/backend.h"
#include "backend/split.h"
#include "base/ids.h"
#include "candor/options.h"
#include "kernels/kernels.h"
#include "model/model.h"

namespace candor::apps {

struct GenerateCase {
  int32_t n_prompt = 512;  // tokens of each sequence
  int32_t n_new = 32;      // tokens decoded in each sequence
  int32_t n_batch = 1;     // sequences together
  bool use_kv_cache = true;
  int32_t n_shared = 0;  // tokens, in whole blocks, that all prompts begin with: read once, and kept once

  // Rows of all prompts.
  int64_t n_prefilled() const { return int64_t{n_batch} * (n_prompt - n_shared) + n_shared; }
};

struct GenerateTimes {
  double prefill_s = 0;
  double decode_s = 0;
  backend::RankTraffic decode_traffic{};
};

class GenerateBench {
 public:
  // Loads the model and reserves for the largest of the cases.
  // Of the options: model_path, quantize, fast_weights, backend, n_threads, n_ranks.
  static Result<std::unique_ptr<GenerateBench>> open(EngineOptions options, const std::vector<GenerateCase>& cases);

  Result<GenerateTimes> run(const GenerateCase& run_case);

  const model::Model& model() const { return *loaded_.model; }
  const backend::BackendInfo& backend_info() const { return loaded_.backend->info(); }
  size_t kv_bytes() const { return kv_->n_bytes(); }

 private:
  struct Sequence {
    int32_t index = 0;  // its blocks are [index * max_blocks_, (index + 1) * max_blocks_)
    std::vector<TokenId> tokens;
    int32_t n_past = 0;
    StateId state = kNoState;  // of slots 2 index and 2 index + 1
  };
  void step(std::vector<Sequence*>& sequences, const std::vector<int32_t>& n_rows);
  void prefill(std::vector<Sequence>& sequences);
  void decode_step(std::vector<Sequence>& sequences, bool use_kv_cache);

  const kernels::KernelTable* kernels_ = nullptr;
  BareModel loaded_;
  std::unique_ptr<backend::KvStore> kv_;
  int32_t max_blocks_ = 0;     // of a sequence
  int32_t shared_blocks_ = 0;  // of the case that runs: the first sequence's, for all
};

}  // namespace candor::apps
