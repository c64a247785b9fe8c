#pragma once
// Token masks of requests with a constraint (grammar, JSON schema): worker threads compute them while steps run. When a
// mask is not ready in time for its row of logits, the row is kept, its sequence pauses, and the token is chosen
// between two later steps, from the same logits and with the same random words. Engine thread only.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "constrain/masked_constraint.h"
#include "engine/request/active_request.h"
#include "engine/request/inbox.h"
#include "engine/request/kept_row.h"
#include "engine/request/output_text.h"
#include "engine/step/engine_metrics.h"
#include "engine/step/pick_input.h"

namespace candor::engine {

class LateMasks {
 public:
  // Wakes the inbox when a mask is ready. max_rows: the most rows with logits in a step.
  LateMasks(Inbox& inbox, MetricStore& metrics, int32_t max_rows);

  constrain::MaskWorker& worker() { return worker_; }
  // A step begins: renews the time that constraints may take to accept tokens in it.
  void begin_step();
  // Sets how long has() may wait from here on: a share of a step's time, longer when only one request is in work.
  void allow_waiting(int64_t step_ns, bool is_alone);
  void allow_no_waiting() { worker_.allow_waiting(0); }

  // Whether the mask of the next token is ready, or none is needed.
  bool has(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text);
  void want(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text);
  // False where accepting the next token would take longer than a step can spare: then it is accepted ahead.
  bool can_accept(const Choice& choice) const;
  void want_ahead(const Choice& choice, TokenId token) { worker_.want_ahead(choice.constraint, token); }
  void count_accepted(const Choice& choice);
  // Hands the wanted masks to the worker. A mask that could not be asked for is asked for again when it is needed.
  void send() noexcept;
  bool has_unsent() const { return worker_.has_unsent(); }

  // Keeps the row of logits; the sequence waits for its mask.
  void keep(SequenceId sequence, KeptRow& row, const PickInput& input);
  bool has_kept() const { return !kept_.empty(); }
  // Calls choose(sequence) for all that wait; where it is true, the sequence waits no longer.
  template <class Choose>
  void retry(const Choose& choose) {
    std::erase_if(kept_, choose);
  }
  void forget(const ActiveRequest& request) {
    std::erase_if(kept_, [&](SequenceId id) { return request.has_sequence(id); });
  }
  void forget_all() { kept_.clear(); }

 private:
  MetricStore& metrics_;
  constrain::MaskWorker worker_;
  std::vector<SequenceId> kept_;  // sequences with a row that waits for its mask
  int64_t accept_left_ns_ = 0;    // what this step may still spend on accepting tokens
};

}  // namespace candor::engine
