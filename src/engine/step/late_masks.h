#pragma once
// The masks of constrained outputs, in time or late, all computed beside the step. Of a sequence whose mask is late the
// row's logits are kept and it waits, and the token is chosen between two steps, as it would have been in its own.
// Engine thread only.

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
  // The inbox is woken when a mask is there. max_rows: with logits, of a step.
  LateMasks(Inbox& inbox, MetricStore& metrics, int32_t max_rows);

  constrain::MaskWorker& worker() { return worker_; }
  // A step begins: what constraints may take of it to accept tokens is theirs again.
  void begin_step();
  // What has() may wait from here on: a share of the time that a step takes; longer where nobody else waits.
  void allow_waiting(int64_t step_ns, bool is_alone);
  void allow_no_waiting() { worker_.allow_waiting(0); }

  // Is the mask of the next token there, where it needs one?
  bool has(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text);
  void want(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text);
  // False where accepting the next token would take longer than a step can spare: then it is accepted ahead.
  bool can_accept(const Choice& choice) const;
  void want_ahead(const Choice& choice, TokenId token) { worker_.want_ahead(choice.constraint, token); }
  void count_accepted(const Choice& choice);
  // Hands over what is wanted. A mask that could not be asked for is asked for again when it is needed.
  void send() noexcept;
  bool has_unsent() const { return worker_.has_unsent(); }

  // The sequence waits with this row.
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
  std::vector<SequenceId> kept_;  // a row of theirs waits for its mask
  int64_t accept_left_ns_ = 0;    // what this step may still spend on accepting tokens
};

}  // namespace candor::engine
