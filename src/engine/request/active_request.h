#pragma once
// A request on its way through the engine: made and checked on the caller's thread, then owned by the engine thread.
// Its choices share one sequence until the prompt is read; then choice i has sequence id + i. The texts of a beam
// search have the ids from id to id + width - 1, in no order.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "candor/event.h"
#include "candor/receipt.h"
#include "candor/request.h"
#include "constrain/masked_constraint.h"
#include "draft/draft_ledger.h"
#include "engine/images/image_store.h"
#include "engine/request/adapter_registry.h"
#include "engine/request/beams.h"
#include "engine/request/kept_row.h"
#include "engine/request/output_text.h"
#include "engine/request/prompt_meter.h"
#include "engine/request/stopwatch.h"
#include "sample/chain.h"
#include "sample/sampler.h"
#include "sched/sequence.h"

namespace candor::engine {

using EventCallback = std::function<void(const TokenEvent&)>;

// Consecutive rows of an image, and where they are in the prompt.
struct PlacedTile {
  SharedImage image{};
  int32_t first_row = 0;  // of the image
  sched::ImageRows rows{};
};

// How a request's tokens are chosen and when it ends.
struct ChoiceRules {
  sample::ChainParams chain{};
  uint64_t seed = 0;  // the request's, or one that prepare_request() made (request_check.cpp)
  int32_t n_logprobs = -1;
  sample::LogprobsOf logprobs_of = sample::LogprobsOf::kModel;
  int64_t max_tokens = 0;  // 0 = no limit
  std::vector<TokenId> stop_ids{};
  bool ignore_eos = false;
  bool may_speculate = true;
  bool explains = false;
  int64_t n_looks = 0;  // tokens of each choice whose explanations show attention
  int32_t n_prompt_logprobs = -1;
  Pooling pooling = Pooling::kNone;        // kMean, kLast or kFirst: which rows
  Pooling asked_pooling = Pooling::kNone;  // as the request says it
  std::optional<bool> normalise{};
  PromptRows rows = PromptRows::kNone;
  LogitsHook on_logits{};
  bool makes_text = true;  // false: the prompt is read, and that is all
};

struct Choice {
  explicit Choice(OutputText text) : output(std::move(text)) {}

  OutputText output;
  std::shared_ptr<constrain::MaskedConstraint> constraint{};  // nullptr: none
  KeptRow kept{};
  int64_t n_made = 0;  // tokens
  int64_t last_token_ns = kNever;
  draft::DraftLedger drafts{};
  std::vector<TokenId> predicted{};  // its tokens, as the caller believes; empty: no longer
  TokenId first_token = kNoToken;    // until it has a sequence of its own
  bool is_open = true;
  bool is_published = false;  // its last event was handed out
};

struct ActiveRequest {
  explicit ActiveRequest(int64_t now_ns) : watch(now_ns) {}

  RequestId id = 0;
  sched::SequenceSpec spec{};
  std::vector<AdapterRegistry::Held> adapters{};
  std::vector<PlacedTile> images{};  // spec.images, and whose rows they are
  ChoiceRules rules{};
  std::vector<Choice> choices{};  // one or more
  std::optional<Beams> beams{};
  EventCallback callback{};
  Stopwatch watch;
  RequestSummary summary{};
  std::shared_ptr<Receipt> receipt{};            // in the making; the summary's
  std::vector<PromptLogprob> prompt_logprobs{};  // gathered while the prompt is read
  std::vector<double> hidden_sum{};              // as well
  int64_t n_summed = 0;                          // rows in it
  std::vector<double> word_sums{};               // as well, of a sparse vector
  std::vector<WordWeight> token_weights{};       // or these
  std::vector<float> prompt_rows{};              // as well
  std::optional<Error> fault{};                  // met then: every choice ends with it
  std::optional<Error> breakdown{};              // an exception: choices that have not ended yet end with this error
  std::shared_ptr<PromptMeter> meter{};          // from submission on
  int64_t deadline_ns = kNever;
  int64_t prompt_deadline_ns = kNever;  // counts until the first token
  int32_t n_open = 0;                   // choices
  bool has_forked = false;              // every open choice has its own sequence

  int32_t n_choices() const { return static_cast<int32_t>(choices.size()); }
  // The earliest deadline that counts; kNever: none.
  int64_t due_ns() const {
    if (prompt_deadline_ns == kNever || watch.has_token()) return deadline_ns;
    return deadline_ns == kNever ? prompt_deadline_ns : std::min(deadline_ns, prompt_deadline_ns);
  }
  // Sequences at once, at most.
  int32_t n_sequences() const { return beams ? beams->width() : n_choices(); }
  SequenceId sequence_of(int32_t choice) const { return id + choice; }
  bool has_sequence(SequenceId sequence) const { return sequence >= id && sequence < id + n_sequences(); }
  Choice& choice(int32_t i) { return choices[static_cast<size_t>(i)]; }
};

}  // namespace candor::engine
