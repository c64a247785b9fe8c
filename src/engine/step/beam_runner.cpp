#include "engine/step/beam_runner.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/request/output_text.h"
#include "engine/step/token_picker.h"
#include "sample/candidates.h"
#include "text/stop_strings.h"

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

void BeamRunner::begin(ActiveRequest& request) {
  Beams& beams = *request.beams;
  Choice& first = request.choice(0);
  beams.live.push_back({request.id, first.output, std::move(first.constraint)});
  for (int32_t i = beams.width() - 1; i > 0; --i) beams.free_sequences.push_back(request.id + i);
}

// A text that was preempted while it waited, and was computed again, gives the same row again.
sched::Outcome BeamRunner::choose(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result) {
  Beams& beams = *request.beams;
  const int32_t live = beams.live_of(slice.sequence->id);
  Beam& beam = beams.live[static_cast<size_t>(live)];
  const PickInput input = parts_.picker.input_of(slice, 0, result);
  if (!parts_.masks.has(beam.constraint, beam.text)) {
    parts_.masks.keep(beam.sequence, beam.kept, input);
  } else if (!rank(request, live, input) && beams.error->kind == sample::kBrokenNumbers) {
    beams.error->message += result.broken_part();
  }
  return {slice.sequence->id, {}, false};
}

// False where it came to a dead end, as the search's error says.
bool BeamRunner::rank(ActiveRequest& request, int32_t live, PickInput input) {
  Beams& beams = *request.beams;
  const Beam& beam = beams.live[static_cast<size_t>(live)];
  input.n_output = static_cast<size_t>(beams.search.length());
  auto ranked = parts_.picker.rank(request, input, {beam.constraint.get(), beam.text});
  const bool is_ranked = ranked.has_value();
  RankedRow row;
  if (is_ranked) {
    row = std::move(*ranked);
  } else {
    beams.error = std::move(ranked).error();
  }
  beams.search.set_row(live, std::move(row.best), std::move(row.top));
  if (request.rules.explains) {
    beams.traces.resize(static_cast<size_t>(beams.search.length()) + 1);
    std::vector<TokenExplanation>& rows = beams.traces.back().rows;
    rows.resize(beams.live.size());
    rows[static_cast<size_t>(live)] = std::move(row.explanation);
  }
  if (beams.search.has_all_rows()) to_advance_.push_back(&request);
  return is_ranked;
}

bool BeamRunner::choose_kept(ActiveRequest& request, SequenceId sequence, int64_t now_ns) {
  const int32_t live = request.beams->live_of(sequence);
  const Beam& beam = request.beams->live[static_cast<size_t>(live)];
  if (!parts_.masks.has(beam.constraint, beam.text)) return false;
  PickInput input = parts_.picker.input_behind(*parts_.scheduler.find(sequence), 0, now_ns);
  input.logits = std::span<const float>(beam.kept.logits);
  input.attention = beam.kept.attention;
  rank(request, live, std::move(input));
  return true;
}

void BeamRunner::advance(Faults& faults, int64_t now_ns) {
  for (ActiveRequest* request : to_advance_) faults.contain(*request, [&] { advance(*request, now_ns); });
  to_advance_.clear();
}

void BeamRunner::advance(ActiveRequest& request, int64_t now_ns) {
  Beams& beams = *request.beams;
  request.watch.on_token(now_ns, std::exchange(beams.last_token_ns, now_ns), false);
  grow(request);
  if (!beams.search.is_over()) {
    for (const Beam& beam : beams.live) parts_.masks.want(beam.constraint, beam.text);
    return;
  }
  for (const Beam& beam : std::exchange(beams.live, {})) retire(request, beam.sequence);
  end(request);
}

void BeamRunner::retire(ActiveRequest& request, SequenceId sequence) {
  parts_.endings.count_usage(request, *parts_.scheduler.find(sequence), 0);
  parts_.scheduler.remove(sequence);
  request.beams->free_sequences.push_back(sequence);
}

void BeamRunner::grow(ActiveRequest& request) {
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
    if (accept(beams, static_cast<int32_t>(i), survivors[i].token, grown[i])) {
      parts_.scheduler.append(grown[i].sequence, survivors[i].token);
      beams.live.push_back(std::move(grown[i]));
    } else {
      retire(request, grown[i].sequence);
    }
  }
  if (request.rules.explains) beams.traces.back().options = options_of(beams.search.candidates());
  beams.search.settle();
}

// The last of a text's continuations takes over what carries it; the others get copies.
Beam BeamRunner::continue_beam(ActiveRequest& request, Beam& parent, bool is_last) {
  if (is_last) return {parent.sequence, std::move(parent.text), std::move(parent.constraint)};
  Beams& beams = *request.beams;
  Beam child{beams.free_sequences.back(), parent.text};
  beams.free_sequences.pop_back();
  parts_.scheduler.fork(parent.sequence, child.sequence);
  if (parent.constraint == nullptr) return child;
  auto copy = parent.constraint->fork();
  if (copy) child.constraint = std::move(*copy);
  if (!copy) beams.error = std::move(copy).error();
  return child;
}

// False where the text does not go on: it is complete, or its sequence has no room for another token.
bool BeamRunner::accept(Beams& beams, int32_t live, TokenId token, Beam& beam) {
  text::StopResult shown;
  const auto reason = parts_.picker.accept(token, beam.text, beam.constraint.get(), shown);
  if (reason && !*reason) return !parts_.scheduler.is_full(*parts_.scheduler.find(beam.sequence));
  if (reason) beams.search.end_survivor(live);
  if (!reason) beams.search.drop_survivor(live);
  return false;
}

void BeamRunner::end(ActiveRequest& request) {
  const Beams& beams = *request.beams;
  const auto answers = beams.search.best();
  if (answers.empty()) {
    const Error error{ErrorKind::kInternal, "the beam search came to an end without an answer"};
    return parts_.endings.fail_choices(request, beams.error.value_or(error));
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
    if (i >= answers.size()) {
      parts_.endings.end_choice(request, parts_.outbox.add(request, choice), FinishReason::kStopEos);
    }
  }
}

// The events of one answer, as if it had been streamed.
void BeamRunner::publish_answer(ActiveRequest& request, int32_t choice, const sample::BeamAnswer& answer) {
  const auto path = request.beams->search.path(answer.node);
  request.summary.usage.completion_tokens += static_cast<int64_t>(path.size());
  OutputText& output = request.choice(choice).output;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_last = i + 1 == path.size();
    TokenEvent& event = parts_.outbox.add(request, choice);
    event.token = path[i]->token;
    if (request.rules.n_logprobs >= 0) {
      event.logprob = TokenLogprob{path[i]->token, path[i]->logprob};
      event.top_logprobs = path[i]->top;
    }
    if (request.rules.explains) event.explanation = explain_node(request.beams->traces[i], *path[i]);
    const bool is_in_scope = output.is_in_scope();
    std::optional<FinishReason> reason;
    if (is_last && answer.end == sample::BeamEnd::kByToken)
      reason = parts_.picker.end_of(request.rules, event.token, is_in_scope, event.stop_index);
    if (!reason) {
      text::StopResult shown = output.push(event.token);
      event.text = std::move(shown.text);
      event.stop_index = shown.hit;
    }
    if (is_last) end_answer(request, answer, event, reason);
  }
}

void BeamRunner::end_answer(ActiveRequest& request, const sample::BeamAnswer& answer, TokenEvent& event,
                            std::optional<FinishReason> reason) {
  event.score = answer.score;
  const bool is_at_limit = request.beams->search.length() == request.rules.max_tokens;
  if (!reason && event.stop_index) reason = FinishReason::kStopString;
  if (!reason && answer.end == sample::BeamEnd::kByOwner) reason = FinishReason::kStopEos;
  if (!reason) reason = is_at_limit ? FinishReason::kLength : FinishReason::kContextFull;
  parts_.endings.end_choice(request, event, *reason);
}

}  // namespace candor::engine
