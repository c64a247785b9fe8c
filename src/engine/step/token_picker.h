#pragma once
// One row of logits to the next token of one choice, and what its caller is told of it: the draw, the text, and whether
// the choice ends. Engine thread only; scratch memory is used again from token to token.

#include <optional>
#include <span>

#include "constrain/token_mask.h"
#include "engine/request/active_request.h"
#include "engine/step/explainer.h"
#include "sample/sampler.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

struct PickInput {
  std::span<const float> logits{};  // [V]
  int32_t choice = 0;
  uint64_t position = 0;            // of the token to choose, in the whole text
  bool has_room = true;             // for another one behind it
  int64_t now_ns = 0;               // when the logits were there
  TokenId guess = kNoToken;         // of speculation, for those who want to see it
  std::span<const TokenId> text{};  // prompt and output before it, as far as they were not cropped
  size_t n_output = 0;              // of them, how many are output
};

// What constrains the next token of one output.
struct OutputView {
  const constrain::MaskedConstraint* constraint = nullptr;  // nullptr: none
  const OutputText& text;

  // While the model reasons before a constrained answer, only the end of the whole is kept from it.
  bool needs_mask() const { return constraint != nullptr && !text.is_reasoning(); }
};

// How one text of a beam search may go on.
struct RankedRow {
  std::vector<sample::Continuation> best{};  // best first
  std::vector<TokenLogprob> top{};           // the row's likeliest
  TokenExplanation explanation{};            // where the rules ask for it
};

struct Picked {
  TokenId token = kNoToken;
  std::optional<FinishReason> reason{};  // set where the choice ends with it
  int64_t gap_ns = kNever;               // since the choice's token before
};

class TokenPicker {
 public:
  // The tokenizer is borrowed and outlives the picker.
  explicit TokenPicker(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer), mask_(tokenizer.n_vocab()) {}

  // Chooses, advances the choice's constraint and text, fills `event` but for what ends a choice. What goes wrong ends
  // the choice with kError and event.error. REQUIRES, as in rank(): a mask that is needed is there.
  Picked pick(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  // The token that pick() would choose, where the choice's constraint would have to accept it; else kNoToken.
  TokenId token_to_accept(ActiveRequest& request, const PickInput& input);
  // For one text of a beam search.
  Result<RankedRow> rank(const ActiveRequest& request, const PickInput& input, OutputView output);
  // Advances the output; set where its text is complete with the token.
  Result<std::optional<FinishReason>> accept(TokenId token, OutputText& text, constrain::MaskedConstraint* constraint,
                                             text::StopResult& shown) const;
  // Set for a token that itself ends a text, with which of the stop ids it is.
  std::optional<FinishReason> end_of(const ChoiceRules& rules, TokenId token, bool is_in_scope,
                                     std::optional<size_t>& stop_index) const;

 private:
  Result<const constrain::TokenMask*> mask_for(OutputView output);
  sample::PickRequest request_for(const ChoiceRules& rules, const PickInput& input) const;
  Result<void> choose(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  Result<std::optional<FinishReason>> add_token(ActiveRequest& request, const PickInput& input, TokenEvent& event);

  const text::Tokenizer& tokenizer_;
  sample::Sampler sampler_;
  Explainer explainer_;
  sample::Pick pick_;
  std::vector<TokenLogprob> ranked_;
  constrain::TokenMask mask_;
};

}  // namespace candor::engine
