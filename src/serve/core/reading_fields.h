#pragma once
// Fields of texts that are read, which the interfaces share: how rows become a vector, which prompt stands before a
// text, and what happens to one that is too long.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"

namespace candor::serve {

struct ReadingTerms {
  Request base{};        // without its prompt
  std::string prefix{};  // before each text
  TextPrompt text(std::string_view text) const { return {.text = prefix + std::string(text)}; }
};

// "pooling" (mean, last, cls, or model: what its files say, which holds where nothing is said), "normalize",
// "prompt_name", "input_type", "task" (an adapter, and the prompt of its own), "priority" and read_cut().
ReadingTerms read_reading(Fields& fields, const ApiLimits& limits, std::vector<std::string>& warnings);
// "truncate": true, or Cohere's NONE, START, END; "truncation_direction": Left or Right; "truncate_prompt_tokens". A
// text that is cut is named in the reply.
void read_cut(Fields& fields, const ApiLimits& limits, Request& base);
// A list of texts, or of {"text": ...}, at most at_most.
std::vector<std::string> read_texts(Fields& fields, const char* name, size_t at_most);

// Cut to so many numbers and brought to length 1 again; 0: as it is.
void shorten(std::vector<float>& vector, size_t n_dimensions);
std::string to_base64(std::span<const float> vector);
double sigmoid(double x);
// Of what a head that ranks pairs gives (ReadingInfo::ranks_pairs): its number, or how much more yes has than no.
double rank_logit(std::span<const float> numbers);
// Exponentials over their sum.
std::vector<double> softmax(std::span<const float> logits);

}  // namespace candor::serve
