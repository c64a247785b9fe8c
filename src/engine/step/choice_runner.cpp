#include "engine/step/choice_runner.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "draft/draft_ledger.h"
#include "draft/verify.h"
#include "engine/request/stopwatch.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"

namespace candor::engine {
namespace {

// Its choices have one text so far, and take their first tokens.
bool chooses_first(const ActiveRequest& request) {
  return request.n_choices() > 1 && !request.has_forked;
}

PickInput of_choice(ActiveRequest& request, int32_t choice, PickInput input) {
  input.choice = choice;
  input.n_output = static_cast<size_t>(request.choice(choice).n_made);
  return input;
}

// Whoever was to draft in the step has cost its time, also where nothing came to be verified.
void count_drafts(const draft::DraftedStep& step, int32_t n_checked, int32_t n_accepted, Usage& usage) {
  if (step.n_drafts == 0) return;
  usage.drafted_tokens += n_checked;
  usage.accepted_tokens += n_accepted;
  usage.drafts[static_cast<size_t>(step.source)] += {.n_steps = 1,
                                                     .drafted_tokens = n_checked,
                                                     .accepted_tokens = n_accepted,
                                                     .plain_ms = step.plain * 1e-6,
                                                     .added_ms = step.extra * 1e-6,
                                                     .saved_ms = n_accepted * step.plain * 1e-6};
}

}  // namespace

ChoiceRunner::ChoiceRunner(const ChooserParts& parts, int32_t max_rows)
    : parts_(parts), viewer_(parts.kernels, parts.head, parts.tokenizer) {
  picked_.reserve(static_cast<size_t>(max_rows));
}

void ChoiceRunner::show_prompt(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result) {
  viewer_.show(request, slice, result, parts_.asks);
}

void ChoiceRunner::ask_prompt(const ActiveRequest& request, const sched::PlannedSlice& slice,
                              const StepResult& result) {
  const int32_t n_logprobs = request.rules.n_prompt_logprobs;
  if (n_logprobs < 0 || request.fault) return;
  for (int32_t i = 0; i < slice.n_shown; ++i) {
    const TokenId next = slice.sequence->tokens[static_cast<size_t>(slice.sequence->shown_begin + i) + 1];
    parts_.asks.add_prompt_row(sample::score_query(slice.shown_row + i, result.device->n_vocab(), next, n_logprobs));
  }
}

// Behind drafts of a constrained text no mask is known yet: those rows come to the host, where their turn comes.
void ChoiceRunner::ask(ActiveRequest& request, const sched::PlannedSlice& slice) {
  if (request.fault || !request.rules.makes_text) return;
  const sched::Sequence& sequence = *slice.sequence;
  if (chooses_first(request)) {
    const PickInput input = parts_.picker.input_behind(sequence, 0, kNever);
    for (int32_t i = 0; i < request.n_choices(); ++i) ask_row(request, of_choice(request, i, input), slice.out_row);
    return;
  }
  const int32_t choice = static_cast<int32_t>(sequence.id - request.id);
  const bool is_constrained = request.choice(choice).constraint != nullptr;
  if (slice.n_draft > 0) text_.assign(sequence.tokens.begin(), sequence.tokens.end());
  for (int32_t i = 0; i <= (is_constrained ? 0 : slice.n_draft); ++i) {
    if (i > 0) text_.push_back(sequence.draft[static_cast<size_t>(i - 1)]);
    PickInput input = of_choice(request, choice, parts_.picker.input_behind(sequence, i, kNever));
    input.n_output += static_cast<size_t>(i);
    if (i > 0) input.text = text_;
    ask_row(request, input, slice.out_row + i);
  }
}

void ChoiceRunner::ask_row(ActiveRequest& request, PickInput input, int32_t out_row) {
  const Choice& choice = request.choice(input.choice);
  if (!parts_.masks.has(choice.constraint, choice.output)) return;
  sample::RowPlan& plan = parts_.asks.add(out_row, input.choice);
  if (!parts_.picker.plan(request, input, out_row, plan)) parts_.asks.drop_last();
}

sched::Outcome ChoiceRunner::choose(ActiveRequest& request, const sched::PlannedSlice& slice,
                                    const StepResult& result) {
  return chooses_first(request) ? choose_first(request, slice, result) : choose_next(request, slice, result);
}

// Of each row the token is chosen as if the row stood alone; a draft that equals it makes the next row's logits true.
sched::Outcome ChoiceRunner::choose_next(ActiveRequest& request, const sched::PlannedSlice& slice,
                                         const StepResult& result) {
  const sched::Sequence& sequence = *slice.sequence;
  const int32_t choice = static_cast<int32_t>(sequence.id - request.id);
  if (parts_.texts.take_ended(request, choice)) {
    parts_.endings.count_usage(request, sequence, 0);
    return {sequence.id, {}, true};
  }
  const size_t n_before = picked_.size();
  bool is_finished = false;
  bool is_late = false;
  const auto pick = [&](int32_t i) {
    const PickInput input = input_for(request, choice, slice, i, result);
    is_late = !can_choose(request, input);
    if (is_late) return kNoToken;
    const Picked picked = choose_row(request, input, slice, result);
    is_finished = picked.reason.has_value();
    picked_.push_back(picked.token);
    if (slice.n_draft > 0) text_.push_back(picked.token);
    return is_finished ? kNoToken : picked.token;
  };
  if (slice.n_draft > 0) text_.assign(sequence.tokens.begin(), sequence.tokens.end());
  const auto drafts = std::span(sequence.draft).first(static_cast<size_t>(slice.n_draft));
  const int32_t n_accepted = draft::verify(drafts, pick);
  const int32_t n_checked = is_late ? n_accepted : slice.n_draft;
  if (is_late && n_accepted == 0) {
    parts_.masks.keep(sequence.id, request.choice(choice).kept, parts_.picker.input_of(slice, 0, result));
  }
  if (slice.n_draft > 0 || sequence.n_pending() == 1) {
    const draft::DraftedStep step = request.choice(choice).drafts.record(n_checked, n_accepted);
    count_drafts(step, n_checked, n_accepted, request.summary.usage);
  }
  if (is_finished) parts_.endings.count_usage(request, sequence, slice.n_rows);
  return {sequence.id, std::span(picked_).subspan(n_before), is_finished};
}

// The prompt of several choices was read: each draws from the same logits; the sequence waits until they fork.
sched::Outcome ChoiceRunner::choose_first(ActiveRequest& request, const sched::PlannedSlice& slice,
                                          const StepResult& result) {
  for (int32_t i = 0; i < request.n_choices(); ++i) {
    request.choice(i).first_token = choose_row(request, input_for(request, i, slice, 0, result), slice, result).token;
  }
  if (!request.choice(0).is_open) parts_.endings.count_usage(request, *slice.sequence, slice.n_rows);
  to_fork_.push_back(&request);
  return {slice.sequence->id, {}, false};
}

// The same token is chosen again where the worker has to accept it first.
bool ChoiceRunner::can_choose(ActiveRequest& request, const PickInput& input) {
  const Choice& choice = request.choice(input.choice);
  if (!parts_.masks.has(choice.constraint, choice.output)) return false;
  if (parts_.masks.can_accept(choice)) return true;
  const TokenId token = parts_.picker.token_to_accept(request, input);
  if (token == kNoToken) return true;
  parts_.masks.want_ahead(choice, token);
  return false;
}

Picked ChoiceRunner::choose_row(ActiveRequest& request, const PickInput& input, const sched::PlannedSlice& slice,
                                const StepResult& result) {
  TokenEvent& event = parts_.outbox.add(request, input.choice);
  const bool is_first = input.choice == 0 && request.choice(0).n_made == 0;
  if (is_first) viewer_.finish(request, result, slice.out_row, event);
  if (request.fault && request.fault->kind == ErrorKind::kIo) request.fault->message += result.broken_part();
  if (request.fault || !request.rules.makes_text) return end_with_prompt(request, event);
  const bool waits = slice.n_draft == 0 && !chooses_first(request) && parts_.texts.may_wait(request, input);
  const Picked picked = waits ? pick_ahead(request, input, event) : pick(request, input, event);
  if (event.error && event.error->kind == ErrorKind::kIo) event.error->message += result.broken_part();
  return picked;
}

Picked ChoiceRunner::pick(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  const Choice& choice = request.choice(input.choice);
  const Picked picked = parts_.picker.pick(request, input, event);
  if (picked.reason) parts_.endings.end_choice(request, event, *picked.reason);
  parts_.masks.count_accepted(choice);
  if (!picked.reason) parts_.masks.want(choice.constraint, choice.output);
  return picked;
}

// Of its text.
Picked ChoiceRunner::pick_ahead(ActiveRequest& request, const PickInput& input, TokenEvent& event) {
  const Picked picked = parts_.picker.pick_token(request, input, event);
  if (picked.reason) {
    parts_.endings.end_choice(request, event, *picked.reason);
  } else {
    parts_.texts.add(request, input);
  }
  return picked;
}

// Of the token behind n_accepted drafts.
PickInput ChoiceRunner::input_for(ActiveRequest& request, int32_t choice, const sched::PlannedSlice& slice,
                                  int32_t n_accepted, const StepResult& result) const {
  PickInput input = of_choice(request, choice, parts_.picker.input_of(slice, n_accepted, result));
  if (n_accepted > 0) input.text = text_;
  if (result.device != nullptr) input.found = parts_.asks.find(slice.out_row + n_accepted, choice);
  return input;
}

// The prompt was all there was to compute, or it could not be shown.
Picked ChoiceRunner::end_with_prompt(ActiveRequest& request, TokenEvent& event) {
  event.error = request.fault;
  const FinishReason reason = request.fault ? FinishReason::kError : FinishReason::kLength;
  parts_.endings.end_choice(request, event, reason);
  return {.reason = reason};
}

bool ChoiceRunner::choose_kept(ActiveRequest& request, SequenceId id, int64_t now_ns) {
  const int32_t index = static_cast<int32_t>(id - request.id);
  const Choice& choice = request.choice(index);
  const sched::Sequence& sequence = *parts_.scheduler.find(id);
  PickInput input = of_choice(request, index, parts_.picker.input_behind(sequence, 0, now_ns));
  input.logits = std::span<const float>(choice.kept.logits);
  input.draft = choice.kept.draft;
  input.attention = choice.kept.attention;
  if (!can_choose(request, input)) return false;
  const Picked picked = pick(request, input, parts_.outbox.add(request, index));
  if (!picked.reason) {
    parts_.scheduler.append(id, picked.token);
    return true;
  }
  parts_.endings.count_usage(request, sequence, 0);
  parts_.scheduler.remove(id);
  return true;
}

void ChoiceRunner::fork_choices(Faults& faults) {
  for (ActiveRequest* request : to_fork_) faults.contain(*request, [&] { fork(*request); });
  to_fork_.clear();
}

// Choices that ended with their first token never get a sequence.
void ChoiceRunner::fork(ActiveRequest& request) {
  sched::Scheduler& scheduler = parts_.scheduler;
  request.has_forked = true;
  for (int32_t i = 1; i < request.n_choices(); ++i) {
    if (!request.choice(i).is_open) continue;
    scheduler.fork(request.id, request.sequence_of(i));
    scheduler.append(request.sequence_of(i), request.choice(i).first_token);
  }
  if (request.choice(0).is_open) {
    scheduler.append(request.id, request.choice(0).first_token);
  } else {
    scheduler.remove(request.id);
  }
}

}  // namespace candor::engine
