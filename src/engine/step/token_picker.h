#pragma once
// Chooses the next token of a choice from its row of logits (mask, sampling chain, draw), appends it to the text, and
// fills the event for the caller. add_token() and add_text() hold the stop rules of ordinary choices: stop id, end
// token; stop string, completed constraint, max_tokens, full context. Engine thread only; scratch memory is reused from
// token to token.
//
// Beam searches use rank() instead of pick(), share end_of() (stop ids, end tokens) and accept() (stop strings,
// completed constraints), and name the reason of an end in BeamRunner::end_answer() (beam_runner.h).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "candor/event.h"
#include "constrain/masked_constraint.h"
#include "constrain/token_mask.h"
#include "engine/request/active_request.h"
#include "engine/request/output_text.h"
#include "engine/step/model_runner.h"
#include "engine/step/pick_input.h"
#include "obs/metrics.h"
#include "sample/beam_scorer.h"
#include "sample/explainer.h"
#include "sample/row_plan.h"
#include "sample/sampler.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"
#include "text/stop_strings.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// The possible continuations of one text of a beam search.
struct RankedRow {
  std::vector<sample::Continuation> best{};  // best first
  std::vector<TokenLogprob> top{};           // the row's likeliest
  TokenExplanation explanation{};            // where the rules ask for it
};

struct Picked {
  TokenId token = kNoToken;
  std::optional<FinishReason> reason{};  // set where the choice ends with it
};

class TokenPicker {
 public:
  // The kernels, the tokenizer and the histogram, of the times between two tokens of a choice, are borrowed. n_ctx:
  // most tokens of a sequence.
  TokenPicker(const kernels::KernelTable& kernels, const text::Tokenizer& tokenizer, int32_t n_ctx,
              obs::Histogram& gaps_ns)
      : tokenizer_(tokenizer), n_ctx_(n_ctx), gaps_ns_(gaps_ns), sampler_(kernels), mask_(tokenizer.n_vocab()) {}

  // For the token behind n_accepted drafts of a sequence, whose accepted drafts are not in its text; of no choice yet.
  PickInput input_of(const sched::PlannedSlice& slice, int32_t n_accepted, const StepResult& result) const;
  // The same without the logits, which were there at now_ns.
  PickInput input_behind(const sched::Sequence& sequence, int32_t n_accepted, int64_t now_ns) const;

  // What a device that has the row may do of the choice; false: it needs the logits. REQUIRES as pick().
  bool plan(ActiveRequest& request, const PickInput& input, int32_t out_row, sample::RowPlan& plan);
  // Chooses, advances the choice's constraint and text, fills `event` but for what ends a choice. What goes wrong ends
  // the choice with kError and event.error. REQUIRES, as in rank(): a mask that is needed is there.
  Picked pick(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  // The two halves of pick(): the token, which may end the choice by itself, and where it does not, its text. Of input,
  // the latter reads choice, has_room and now_ns. Without a constraint it finds no error.
  Picked pick_token(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  Picked add_text(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  // The token that pick() would choose, where the choice's constraint would have to accept it; else kNoToken.
  TokenId token_to_accept(ActiveRequest& request, const PickInput& input);
  // Ranks the continuations of one text of a beam search.
  Result<RankedRow> rank(const ActiveRequest& request, const PickInput& input, OutputView output);
  // Appends the token to the text and advances the constraint; the reason is set where the token completes the text
  // (stop string, completed constraint).
  Result<std::optional<FinishReason>> accept(TokenId token, OutputText& text, constrain::MaskedConstraint* constraint,
                                             text::StopResult& shown) const;
  // The reason, where the token itself ends a text (stop id, end token); stop_index: which of the stop ids it is.
  std::optional<FinishReason> end_of(const ChoiceRules& rules, TokenId token, bool is_in_scope,
                                     std::optional<size_t>& stop_index) const;

 private:
  Result<const constrain::TokenMask*> mask_for(OutputView output);
  // Without logits and mask.
  static sample::PickRequest request_for(const ChoiceRules& rules, const PickInput& input);
  Result<std::span<const float>> hooked_row(const ChoiceRules& rules, const PickInput& input);
  Result<void> choose(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  void check_prediction(const ActiveRequest& request, const PickInput& input, Choice& choice, TokenEvent& event);
  std::optional<FinishReason> add_token(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  void count_time(ActiveRequest& request, const PickInput& input, const TokenEvent& event);

  const text::Tokenizer& tokenizer_;
  const int32_t n_ctx_;
  obs::Histogram& gaps_ns_;
  sample::Sampler sampler_;
  sample::RowPlanner planner_;
  sample::Explainer explainer_;
  sample::Pick pick_;
  sample::Pick predicted_;
  std::vector<TokenLogprob> ranked_;
  std::vector<float> row_;  // that a hook may change
  constrain::TokenMask mask_;
};

}  // namespace candor::engine
