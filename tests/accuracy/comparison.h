#pragma once
// How far one backend's logits are from another's over a set of texts (numerics.md, "Accuracy is separate").

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "formats/model_file.h"
#include "model/score.h"

namespace candor::testing {

using Text = std::vector<TokenId>;

// A model on a backend of its own.
struct Subject {
  std::unique_ptr<backend::Backend> backend;  // outlives the rest
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::Scorer> scorer;
};

// backend: "cpu" or "reference", K/V of its default type. Fails the running test and gives an empty Subject on error.
Subject open_subject(const formats::ModelFile& file, const std::string& backend, int32_t max_tokens);

struct Comparison {
  int64_t n_positions = 0;
  double mean_kl = 0.0;           // nats
  int64_t n_clear = 0;            // positions where the truth's first and second differ by more than 0.1
  double same_top = 1.0;          // share of those with the same top token
  double worst_logit = 0.0;       // largest difference of any logit
  double truth_perplexity = 0.0;  // of the texts' own next tokens
  double other_perplexity = 0.0;
  double perplexity_change() const { return other_perplexity / truth_perplexity - 1.0; }
};

Comparison compare(Subject& truth, Subject& other, std::span<const Text> texts);

// Prints one line of figures and expects mean KL <= 1e-3, same top token in >= 99 %, perplexity within 0.5 %; slack:
// times as far.
void expect_within_contract(const std::string& name, const Comparison& comparison, double slack = 1.0);

// A text of n_tokens that the model itself draws at temperature 1, starting with `first`.
Text sample_text(Subject& subject, TokenId first, int32_t n_tokens, uint64_t seed);

// Perplexity of all tokens after the first of each text.
double perplexity_of(Subject& subject, std::span<const Text> texts);

}  // namespace candor::testing
