#pragma once
// A text as weights of words of the vocabulary: of a token's own word, by a layer over its hidden state (the lexical
// weights of Chen et al., "BGE M3-Embedding", 2024), or of every word, by the logits of a head that guesses masked
// words (Formal et al., "SPLADE", 2021). Sums are taken in the order of the text, in double. Plain data, for one
// thread.

#include <cstdint>
#include <span>
#include <vector>

#include "candor/ids.h"
#include "candor/reading.h"
#include "model/vector_layer.h"

namespace candor::model {

struct SparseHead {
  std::vector<VectorLayer> of_token;  // to one number; empty: there is none
  bool of_logits = false;
  bool adds = false;   // of logits: over the tokens; or else the largest counts
  int32_t n_logs = 1;  // of logits: how often log(1 + x) is taken
  bool exists() const { return of_logits || !of_token.empty(); }
};

// A token's own weight.
float token_weight(const SparseHead& head, std::span<const float> hidden);

// words: [V] of a text, empty before its first row: of each word the largest logit so far, or the sum.
void add_logits(const SparseHead& head, std::span<const float> logits, std::vector<double>& words);

// What a text's rows gave: of words, or of tokens, a word's largest one. Weights that are not positive are left out;
// ascending tokens. NaN stays NaN.
std::vector<WordWeight> sparse_vector(const SparseHead& head, std::span<const double> words,
                                      std::vector<WordWeight> tokens);

}  // namespace candor::model
