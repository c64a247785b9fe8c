#pragma once
// Runs whole texts through a model, outside the engine: logits at every position, log-probabilities of given tokens,
// perplexity and divergence. For `candor eval` and the accuracy tests; it chooses no token, so it may use libm. One
// thread; between make() and the last call nothing else runs steps on the same backend.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "base/ids.h"
#include "model/model.h"

namespace candor::model {

struct ScorerOptions {
  int32_t max_tokens = 0;  // of one text; at most the model's context
  int32_t chunk_rows = 64;
  KvType kv_type = KvType::kBf16;
  std::vector<backend::AdapterUse> uses{};  // of every row
};

class Scorer {
 public:
  // Reserves the model's arena and K/V pages for one text. Borrows both.
  static Result<std::unique_ptr<Scorer>> make(Model& model, backend::Backend& backend, const ScorerOptions& options);

  // Calls visit(i, logits) for i = 0 .. n - 1: logits [V] after tokens[0 .. i], valid during the call.
  using Visit = std::function<void(size_t i, std::span<const float> logits)>;
  Result<void> visit_logits(std::span<const TokenId> tokens, const Visit& visit);

  // [n - 1]: natural logarithm of the probability of tokens[i + 1] after tokens[0 .. i].
  Result<std::vector<double>> logprobs(std::span<const TokenId> tokens);

 private:
  Scorer(Model& model, backend::Backend& backend, const ScorerOptions& options);
  Result<void> check(std::span<const TokenId> tokens) const;

  // Constant after make().
  Model& model_;
  backend::Backend& backend_;
  ScorerOptions options_;
  std::unique_ptr<backend::KvStore> kv_;
  std::vector<BlockId> blocks_;
};

// Log-probability of a token under softmax(logits). REQUIRES: 0 <= token < logits.size().
double logprob_of(std::span<const float> logits, TokenId token);

// KL(softmax(truth) || softmax(other)) in nats. REQUIRES: equal sizes.
double kl_divergence(std::span<const float> truth, std::span<const float> other);

// exp of the mean of -logprobs; 1 for none.
double perplexity(std::span<const double> logprobs);

}  // namespace candor::model
