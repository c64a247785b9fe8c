#pragma once
// Translates the request fields that name tokens or texts into token ids of the model's vocabulary: logit biases, bans,
// allowed ids, bad words, the sequence breakers of DRY, and what min_tokens holds back. Runs on the caller's thread.
// The stop rules are in engine/step/token_picker.h.

#include "candor/request.h"
#include "sample/chain.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// Fills the parts of `chain` that need a vocabulary. An unknown id, a list that is too long, and an empty text are
// refused by the name of the field.
Result<void> add_token_rules(const SamplingParams& sampling, const text::Tokenizer& tokenizer,
                             sample::ChainParams& chain);

}  // namespace candor::engine
