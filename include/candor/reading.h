#pragma once
// What is made of a text that is read and not continued: one vector, a number for each label, or rows of numbers. Plain
// data; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "candor/ids.h"

namespace candor {

// One vector for a text, from the last hidden states, behind the model's final norm where it has one.
enum class Pooling : std::uint8_t {
  kNone,      // the answer is text
  kMean,      // of all tokens; brought to length 1
  kLast,      // the last token's; brought to length 1
  kFirst,     // the first token's ([CLS]); brought to length 1
  kWeighted,  // of all tokens, the first counted once, the second twice, and so on; brought to length 1
  // As the model's files say it: rows, further layers (sentence-transformers' Dense), and whether its length becomes 1;
  // where they say nothing, kMean.
  kModel,
  kLabels,  // of ReadingInfo::labels, by the model's own head: one number for each, before any softmax or sigmoid
  kSparse,  // weights of words in place of a vector, where ReadingInfo::weighs_words
};

enum class PromptRows : std::uint8_t {
  kNone,     // the answer is text; otherwise rows of floats, one for each token, in the order of the text
  kLogits,   // [prompt tokens, ModelInfo::n_vocab]: row i for the token behind token i
  kHidden,   // [prompt tokens, ModelInfo::dim]: the last hidden states, behind the final norm
  kVectors,  // kHidden behind the layers that the model's files have for tokens (ColBERT), at length 1 where they say
             // so
  kLabels,   // [prompt tokens, labels], where ReadingInfo::labels are those of tokens
};

// Which tokens a prompt loses where it is too long.
enum class PromptCut : std::uint8_t {
  kStart,  // the oldest
  kEnd,    // the newest; tokens that the model puts behind every text stay
};

// Two texts that are read together, as cross-encoders do: joined by the model's own marks, the second one's tokens
// marked as such where the model tells them apart.
struct PairPrompt {
  std::string first{};
  std::string second{};
};

// A text that stands before what is read, for one use: "query" -> "search_query: ".
struct NamedPrompt {
  std::string name{};
  std::string text{};
};

// One word of a sparse vector, whose other words have the weight 0.
struct WordWeight {
  TokenId token = -1;
  float weight = 0.0f;
  bool operator==(const WordWeight&) const = default;
};

// How a model's files say that texts are read.
struct ReadingInfo {
  bool writes = true;                 // false: it has no words to choose from, and can only be asked for vectors
  Pooling pooling = Pooling::kNone;   // kMean, kLast, kFirst or kWeighted where the files say it
  std::int32_t dim = 0;               // of Pooling::kModel's vector
  bool normalises = true;             // that vector's length is 1
  std::vector<std::string> labels{};  // of its head; empty: it has none
  bool labels_tokens = false;         // each token gets labels, not the text
  bool weighs_words = false;          // it gives sparse vectors: BGE M3's lexical weights, or SPLADE's
  std::int32_t token_dim = 0;         // of PromptRows::kVectors
  bool answers_yes = false;           // of its two labels the first says that a document answers a query
  // Whether it scores pairs: by one label, or by how much likelier yes is than no.
  bool ranks_pairs() const { return !labels_tokens && (labels.size() == 1 || answers_yes); }
  std::vector<NamedPrompt> prompts{};
  std::string default_prompt{};  // the name of the one that is meant where none is named
};

}  // namespace candor
