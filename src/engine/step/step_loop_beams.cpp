// StepLoop: beam searches. Each text has a sequence; all hold until every row is there, then the best continuations
// fork, and what nobody goes on from is removed.

#include <algorithm>
#include <utility>

#include "engine/step/step_loop.h"

namespace candor::engine {
namespace {

constexpr int kDroppedShown = 8;

std::vector<BeamOption> options_of(std::span<const sample::BeamCandidate> candidates) {
  std::vector<BeamOption> options;
  int n_dropped = 0;
  for (const sample::BeamCandidate& candidate : candidates) {
    if (candidate.fate == BeamFate::kDropped && ++n_dropped > kDroppedShown) continue;
    options.push_back({candidate.live, candidate.token, candidate.score, candidate.fate});
  }
  return options;
}

// REQUIRES: the node was chosen in that step.
TokenExplanation explain_node(const BeamTrace& trace, const sample::BeamNode& node) {
  TokenExplanation explanation = trace.rows[static_cast<size_t>(node.live)];
  explanation.beam_options = trace.options;
  const auto is_node = [&](const BeamOption& o) { return o.parent == node.live && o.token == node.token; };
  const auto option = std::ranges::find_if(trace.options, is_node);
  explanation.beam_option = static_cast<size_t>(option - trace.options.begin());
  return explanation;
}

}  // namespace

void StepLoop::begin_beams(ActiveRequest& request) {
  Beams& beams = *request.beams;
  Choice& first = request.choice(0);
  beams.live.push_back({request.id, first.output, std::move(first.constraint)});
  for (int32_t i = beams.width() - 1; i > 0; --i) beams.free_sequences.push_back(request.id + i);
}

// A text that gave way while it held, and was computed again, gives the same row again.
sched::Outcome StepLoop::pick_beam(ActiveRequest& request, const sched::PlannedSlice& slice,
                                   const StepResult& result) {
  Beams& beams = *request.beams;
  const int32_t live = beams.live_of(slice.sequence->id);
  Beam& beam = beams.live[static_cast<size_t>(live)];
  const PickInput input = input_for(slice, 0, result.logits);
  if (!has_mask(beam.constraint, beam.text)) {
    keep(beam.sequence, beam.kept, input);
  } else if (!rank_beam(request, live, input) && beams.error->kind == sample::kBrokenNumbers) {
    beams.error->message += broken_place(result);
  }
  return {slice.sequence->id, {}, false};
}

// False where it came to a dead end, as the search's error says.
bool StepLoop::rank_beam(ActiveRequest& request, int32_t live, PickInput input) {
  Beams& beams = *request.beams;
  const Beam& beam = beams.live[static_cast<size_t>(live)];
  input.n_output = static_cast<size_t>(beams.search.length());
  auto ranked = picker_.rank(request, input, {beam.constraint.get(), beam.text});
  if (!ranked) beams.error = std::move(ranked).error();
  RankedRow row = ranked ? std::move(*ranked) : RankedRow{};
  beams.search.set_row(live, std::move(row.best), std::move(row.top));
  if (request.rules.explains) {
    beams.traces.resize(static_cast<size_t>(beams.search.length()) + 1);
    std::vector<TokenExplanation>& rows = beams.traces.back().rows;
    rows.resize(beams.live.size());
    rows[static_cast<size_t>(live)] = std::move(row.explanation);
  }
  if (beams.search.has_all_rows()) to_advance_.push_back(&request);
  return ranked.has_value();
}

void StepLoop::advance_beams() {
  for (ActiveRequest* request : to_advance_) contain(*request, [&] { advance_beams(*request); });
  to_advance_.clear();
}

void StepLoop::advance_beams(ActiveRequest& request) {
  Beams& beams = *request.beams;
  request.watch.on_token(token_time_ns_, std::exchange(beams.last_token_ns, token_time_ns_), false);
  grow_beams(request);
  if (!beams.search.is_over()) {
    for (const Beam& beam : beams.live) want_mask(beam.constraint, beam.text);
    return;
  }
  for (const Beam& beam : std::exchange(beams.live, {})) retire(request, beam.sequence);
  end_beams(request);
}

void StepLoop::retire(ActiveRequest& request, SequenceId sequence) {
  count_usage(request, *scheduler_.find(sequence), 0);
  scheduler_.remove(sequence);
  request.beams->free_sequences.push_back(sequence);
}

void StepLoop::grow_beams(ActiveRequest& request) {
  Beams& beams = *request.beams;
  const auto survivors = beams.search.select();
  std::vector<int32_t> n_children(beams.live.size());
  for (const sample::Survivor& survivor : survivors) ++n_children[static_cast<size_t>(survivor.parent)];
  for (size_t i = 0; i < beams.live.size(); ++i) {
    if (n_children[i] == 0) retire(request, beams.live[i].sequence);
  }
  std::vector<Beam> grown;
  for (const sample::Survivor& survivor : survivors) {
    const size_t parent = static_cast<size_t>(survivor.parent);
    grown.push_back(continue_beam(request, beams.live[parent], --n_children[parent] == 0));
  }
  beams.live.clear();
  for (size_t i = 0; i < grown.size(); ++i) {
    if (accept_token(beams, static_cast<int32_t>(i), survivors[i].token, grown[i])) {
      scheduler_.append(grown[i].sequence, survivors[i].token);
      beams.live.push_back(std::move(grown[i]));
    } else {
      retire(request, grown[i].sequence);
    }
  }
  if (request.rules.explains) beams.traces.back().options = options_of(beams.search.candidates());
  beams.search.settle();
}

// The last of a text's continuations takes over what carries it; the others get copies.
Beam StepLoop::continue_beam(ActiveRequest& request, Beam& parent, bool is_last) {
  if (is_last) return {parent.sequence, std::move(parent.text), std::move(parent.constraint)};
  Beams& beams = *request.beams;
  Beam child{beams.free_sequences.back(), parent.text};
  beams.free_sequences.pop_back();
  scheduler_.fork(parent.sequence, child.sequence);
  if (parent.constraint == nullptr) return child;
  auto copy = parent.constraint->fork();
  if (copy) child.constraint = std::move(*copy);
  if (!copy) beams.error = std::move(copy).error();
  return child;
}

// False where the text does not go on: it is complete, or its sequence has no room for another token.
bool StepLoop::accept_token(Beams& beams, int32_t live, TokenId token, Beam& beam) {
  text::StopResult shown;
  const auto reason = picker_.accept(token, beam.text, beam.constraint.get(), shown);
  if (reason && !*reason) return !scheduler_.is_full(*scheduler_.find(beam.sequence));
  if (reason) beams.search.end_survivor(live);
  if (!reason) beams.search.drop_survivor(live);
  return false;
}

void StepLoop::end_beams(ActiveRequest& request) {
  const Beams& beams = *request.beams;
  const auto answers = beams.search.best();
  if (answers.empty()) {
    const Error error =
        beams.error.value_or(Error{ErrorKind::kInternal, "the beam search came to an end without an answer"});
    for (int32_t i = 0; i < request.n_choices(); ++i) {
      TokenEvent& event = outbox_.add(request, i);
      event.error = error;
      end_choice(request, event, FinishReason::kError);
    }
    return;
  }
  const size_t n = static_cast<size_t>(request.n_choices());
  if (answers.size() < n) {
    request.summary.warnings.push_back("n is " + std::to_string(n) + ", but the beams found " +
                                       std::to_string(answers.size()) + " different answers: the others are empty");
  }
  request.watch.on_text(clock_.now_ns());
  for (size_t i = 0; i < n; ++i) {
    const int32_t choice = static_cast<int32_t>(i);
    if (i < answers.size()) publish_answer(request, choice, answers[i]);
    if (i >= answers.size()) end_choice(request, outbox_.add(request, choice), FinishReason::kStopEos);
  }
}

// The events of one answer, as if it had been streamed.
void StepLoop::publish_answer(ActiveRequest& request, int32_t choice, const sample::BeamAnswer& answer) {
  const auto path = request.beams->search.path(answer.node);
  request.summary.usage.completion_tokens += static_cast<int64_t>(path.size());
  OutputText& output = request.choice(choice).output;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_last = i + 1 == path.size();
    TokenEvent& event = outbox_.add(request, choice);
    event.token = path[i]->token;
    if (request.rules.n_logprobs >= 0) {
      event.logprob = TokenLogprob{path[i]->token, path[i]->logprob};
      event.top_logprobs = path[i]->top;
    }
    if (request.rules.explains) event.explanation = explain_node(request.beams->traces[i], *path[i]);
    const bool is_in_scope = output.is_in_scope();
    std::optional<FinishReason> reason;
    if (is_last && answer.end == sample::BeamEnd::kByToken)
      reason = picker_.end_of(request.rules, event.token, is_in_scope, event.stop_index);
    if (!reason) {
      text::StopResult shown = output.push(event.token);
      event.text = std::move(shown.text);
      event.stop_index = shown.hit;
    }
    if (!is_last) continue;
    event.score = answer.score;
    end_choice(request, event, reason.value_or(reason_of(request, answer, event)));
  }
}

FinishReason StepLoop::reason_of(const ActiveRequest& request, const sample::BeamAnswer& answer,
                                 const TokenEvent& event) const {
  if (event.stop_index) return FinishReason::kStopString;
  if (answer.end == sample::BeamEnd::kByOwner) return FinishReason::kStopEos;
  const bool is_at_limit = request.beams->search.length() == request.rules.max_tokens;
  return is_at_limit ? FinishReason::kLength : FinishReason::kContextFull;
}

}  // namespace candor::engine
