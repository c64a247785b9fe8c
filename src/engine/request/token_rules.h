#pragma once
// What a request says about single tokens and texts, as ids of the model's vocabulary: biases, bans, allowed ids, bad
// words, the breakers of DRY, what min_tokens holds back. (Stop rules: engine/step/token_picker.h.) Caller's thread.

#include "candor/request.h"
#include "sample/chain.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// Fills the parts of `chain` that need a vocabulary. An unknown id, a list that is too long, and an empty text are
// refused by the name of the field.
Result<void> add_token_rules(const SamplingParams& sampling, const text::Tokenizer& tokenizer,
                             sample::ChainParams& chain);

}  // namespace candor::engine
