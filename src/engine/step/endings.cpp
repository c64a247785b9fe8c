#include "engine/step/endings.h"

namespace candor::engine {

void Endings::end_choice(ActiveRequest& request, TokenEvent& event, FinishReason reason) {
  Choice& choice = request.choice(event.choice);
  if (reason != FinishReason::kStopString) event.text += choice.output.finish();
  event.finish = reason;
  choice.is_open = false;
  if (--request.n_open > 0) return;
  request.watch.on_end(clock_.now_ns());
  stats_.count_finished();
  event.summary.emplace();  // filled when it is published and everything is counted
}

void Endings::end_choices(ActiveRequest& request, FinishReason reason) {
  for (int32_t i = 0; i < request.n_choices(); ++i) {
    if (request.choice(i).is_open) end_choice(request, outbox_.add(request, i), reason);
  }
}

void Endings::fail_choices(ActiveRequest& request, const Error& error) {
  for (int32_t i = 0; i < request.n_choices(); ++i) {
    TokenEvent& event = outbox_.add(request, i);
    event.error = error;
    end_choice(request, event, FinishReason::kError);
  }
}

void Endings::count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows) {
  stats_.count_left(request.summary.usage, sequence, n_rows);
}

void Endings::leave_scheduler(ActiveRequest& request) {
  if (is_abandoned_) return;
  for (int32_t i = 0; i < request.n_sequences(); ++i) {
    if (const sched::Sequence* sequence = scheduler_.find(request.sequence_of(i))) {
      count_usage(request, *sequence, 0);
      scheduler_.remove(sequence->id);
    }
  }
  masks_.forget(request);
}

}  // namespace candor::engine
