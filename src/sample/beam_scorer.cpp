#include "sample/beam_scorer.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/error.h"
#include "sample/exact_log.h"

namespace candor::sample {

BeamScorer::BeamScorer(const BeamParams& params) : params_(params), live_(1) {
  CANDOR_CHECK(params.asked.width >= 1 && params.n_best <= params.asked.width);
}

bool BeamScorer::has_all_rows() const {
  return std::ranges::all_of(live_, &Live::has_row);
}

void BeamScorer::set_row(int32_t live, std::vector<Continuation> best, std::vector<TokenLogprob> top) {
  Live& text = live_[static_cast<size_t>(live)];
  text.has_row = true;
  text.next = std::move(best);
  text.top = std::move(top);
}

void BeamScorer::rank() {
  ranked_.clear();
  for (size_t i = 0; i < live_.size(); ++i) {
    for (size_t next = 0; next < live_[i].next.size(); ++next) {
      const Continuation& way = live_[i].next[next];
      ranked_.push_back({live_[i].score + static_cast<double>(way.score), static_cast<int32_t>(i), next, way.token});
    }
  }
  std::ranges::stable_sort(ranked_, std::greater(), &BeamCandidate::score);
}

BeamScorer::Live BeamScorer::grow(const BeamCandidate& candidate) {
  const Live& parent = live_[static_cast<size_t>(candidate.live)];
  const Continuation& next = parent.next[candidate.next];
  nodes_.push_back({parent.node, candidate.live, next.token, next.logprob, parent.top});
  return {.score = candidate.score, .node = static_cast<int32_t>(nodes_.size()) - 1};
}

// A complete text counts only where it is among the best `width`, else a poor end would beat a good text that goes on.
std::span<const Survivor> BeamScorer::select() {
  CANDOR_CHECK(has_all_rows());
  rank();
  ++length_;
  survivors_.clear();
  std::vector<Live> grown;
  const size_t width = static_cast<size_t>(params_.asked.width);
  for (size_t i = 0; i < ranked_.size() && grown.size() < width; ++i) {
    BeamCandidate& candidate = ranked_[i];
    if (!live_[static_cast<size_t>(candidate.live)].next[candidate.next].ends) {
      grown.push_back(grow(candidate));
      survivors_.push_back({candidate.live, candidate.token, i});
      candidate.fate = BeamFate::kKept;
    } else if (i < width) {
      complete(grow(candidate), BeamEnd::kByToken);
      candidate.fate = BeamFate::kComplete;
    }
  }
  live_ = std::move(grown);
  return survivors_;
}

void BeamScorer::end_survivor(int32_t live) {
  end(live, BeamFate::kComplete);
  complete(live_[static_cast<size_t>(live)], BeamEnd::kByOwner);
}

void BeamScorer::end(int32_t live, BeamFate fate) {
  live_[static_cast<size_t>(live)].has_ended = true;
  ranked_[survivors_[static_cast<size_t>(live)].candidate].fate = fate;
}

void BeamScorer::settle() {
  std::erase_if(live_, &Live::has_ended);
  if (params_.max_length == 0 || length_ < params_.max_length) return;
  for (const Live& text : live_) complete(text, BeamEnd::kCut);
  live_.clear();
}

double BeamScorer::normalised(double score, int64_t length) const {
  return score / pow_f64(static_cast<double>(length), params_.asked.length_penalty);
}

void BeamScorer::complete(const Live& text, BeamEnd end) {
  const BeamAnswer answer{normalised(text.score, length_), text.node, end};
  const auto is_worse = [&](const BeamAnswer& other) { return other.score < answer.score; };
  answers_.insert(std::ranges::find_if(answers_, is_worse), answer);
}

// Sums of logarithms only fall, so that the longest length bounds what a penalty above 0 can give, the next one else.
bool BeamScorer::can_improve(const Live& text) const {
  const double worst = answers_[static_cast<size_t>(params_.n_best) - 1].score;
  if (params_.asked.length_penalty > 0.0 && params_.max_length == 0) return true;
  const int64_t length = params_.asked.length_penalty > 0.0 ? params_.max_length : length_ + 1;
  return normalised(text.score, length) > worst;
}

bool BeamScorer::is_over() const {
  if (live_.empty()) return true;
  const bool stops_early = params_.asked.early_stopping;
  if (answers_.size() < static_cast<size_t>(stops_early ? params_.asked.width : params_.n_best)) return false;
  return stops_early || std::ranges::none_of(live_, [&](const Live& text) { return can_improve(text); });
}

std::vector<BeamAnswer> BeamScorer::best() const {
  const size_t n = std::min(answers_.size(), static_cast<size_t>(params_.n_best));
  return {answers_.begin(), answers_.begin() + static_cast<std::ptrdiff_t>(n)};
}

std::vector<const BeamNode*> BeamScorer::path(int32_t node) const {
  std::vector<const BeamNode*> nodes;
  for (int32_t at = node; at >= 0; at = nodes.back()->parent) nodes.push_back(&nodes_[static_cast<size_t>(at)]);
  std::ranges::reverse(nodes);
  return nodes;
}

}  // namespace candor::sample
