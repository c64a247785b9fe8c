#include "engine/step/prompt_viewer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "sched/sequence.h"

namespace candor::engine {
namespace {

void add_to(std::vector<double>& sum, std::span<const float> row, double weight) {
  sum.resize(row.size(), 0.0);
  for (size_t i = 0; i < row.size(); ++i) sum[i] += static_cast<double>(row[i]) * weight;
}

// The vector of length 1 in this direction; zeros stay zeros.
std::vector<float> unit(std::span<const double> sum) {
  double square = 0.0;
  for (const double x : sum) square += x * x;
  const double scale = square > 0.0 ? 1.0 / std::sqrt(square) : 0.0;
  std::vector<float> result(sum.size());
  std::ranges::transform(sum, result.begin(), [scale](double x) { return static_cast<float>(x * scale); });
  return result;
}

Error not_finite() {
  return {ErrorKind::kIo, "the hidden states are not finite numbers: the weights are damaged or overflow", "prompt"};
}

}  // namespace

std::vector<float> PromptViewer::row_of(PromptRows kind, std::span<const float> hidden) const {
  if (kind == PromptRows::kLabels) return model::run_layers(head_.label_layers, hidden);
  std::vector<float> row = model::run_layers(head_.token_layers(), hidden);
  if (head_.normalises) model::normalise(row);
  return row;
}

void PromptViewer::add_row(ActiveRequest& request, const StepResult& result, int32_t row) const {
  const PromptRows kind = request.rules.rows;
  if (kind == PromptRows::kNone) return;
  std::span<const float> floats = kind == PromptRows::kLogits ? result.logits(row) : result.hidden(row);
  std::vector<float> made;
  if (kind == PromptRows::kLabels || (kind == PromptRows::kVectors && !head_.token_layers().empty())) {
    floats = made = row_of(kind, floats);
  }
  std::vector<float>& rows = request.prompt_rows;
  if (rows.empty()) rows.reserve(floats.size() * request.spec.prompt.size());
  rows.insert(rows.end(), floats.begin(), floats.end());
}

// The model's own marks are no words.
void PromptViewer::add_words(ActiveRequest& request, const StepResult& result, int32_t row, TokenId token) const {
  if (head_.sparse.of_logits) return model::add_logits(head_.sparse, result.logits(row), request.word_sums);
  const text::TokenKind kind = tokenizer_.kind(token);
  if (kind == text::TokenKind::kControl || kind == text::TokenKind::kUnknown) return;
  request.token_weights.push_back({token, model::token_weight(head_.sparse, result.hidden(row))});
}

void PromptViewer::add_hidden(ActiveRequest& request, const StepResult& result, int32_t row) const {
  ++request.n_summed;
  const bool is_weighted = request.rules.pooling == Pooling::kWeighted;
  add_to(request.hidden_sum, result.hidden(row), is_weighted ? static_cast<double>(request.n_summed) : 1.0);
}

// Of the pooled rows.
std::vector<float> PromptViewer::vector_of(const ActiveRequest& request) const {
  const Pooling asked = request.rules.asked_pooling;
  const bool is_models = asked == Pooling::kModel;
  const bool has_layers = asked == Pooling::kLabels || (is_models && !head_.dense.empty());
  const bool normalises = request.rules.normalise.value_or(!is_models || head_.normalises);
  if (!has_layers && normalises) return unit(request.hidden_sum);
  const auto n = static_cast<double>(request.n_summed);
  const double weights = request.rules.pooling == Pooling::kWeighted ? n * (n + 1.0) / 2.0 : n;
  std::vector<float> pooled(request.hidden_sum.size());
  std::ranges::transform(request.hidden_sum, pooled.begin(),
                         [weights](double sum) { return static_cast<float>(sum / weights); });
  if (asked == Pooling::kLabels) return model::run_layers(head_.label_layers, pooled);
  std::vector<float> vector = is_models ? model::run_layers(head_.dense, pooled) : std::move(pooled);
  if (normalises) model::normalise(vector);
  return vector;
}

void PromptViewer::score(ActiveRequest& request, const backend::LogitRow& row, const backend::RowSummary* found,
                         TokenId token) {
  const int32_t n_logprobs = request.rules.n_prompt_logprobs;
  if (found == nullptr || !sampler_.score(*found, token, n_logprobs, pick_)) {
    if (auto scored = sampler_.score(row.get(), token, n_logprobs, pick_); !scored) {
      request.fault = std::move(scored).error();
      return;
    }
  }
  PromptLogprob& shown = request.prompt_logprobs.emplace_back();
  shown.logprob = {token, pick_.logprob};
  shown.top = pick_.top;
}

void PromptViewer::show(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result,
                        const sample::RowAsks& asks) {
  const sched::Sequence& sequence = *slice.sequence;
  if (request.rules.rows == PromptRows::kLogits || head_.sparse.of_logits) {
    result.bring(slice.shown_row, slice.n_shown);
  }
  for (int32_t i = 0; i < slice.n_shown && !request.fault; ++i) {
    const int32_t row = slice.shown_row + i;
    const size_t next = static_cast<size_t>(sequence.shown_begin + i) + 1;
    const Pooling pooling = request.rules.pooling;
    const bool is_first = pooling == Pooling::kFirst && request.n_summed == 0;
    if (is_first || pooling == Pooling::kMean || pooling == Pooling::kWeighted) add_hidden(request, result, row);
    if (pooling == Pooling::kSparse) add_words(request, result, row, sequence.tokens[next - 1]);
    add_row(request, result, row);
    if (request.rules.n_prompt_logprobs < 0) continue;
    score(request, result.logit_row(row), asks.find_prompt_row(row), sequence.tokens[next]);
  }
}

void PromptViewer::finish(ActiveRequest& request, const StepResult& result, int32_t row, TokenEvent& event) const {
  event.prompt_logprobs = std::exchange(request.prompt_logprobs, {});
  add_row(request, result, row);
  event.prompt_rows = std::exchange(request.prompt_rows, {});
  if (request.rules.pooling == Pooling::kNone) return;
  if (request.rules.pooling == Pooling::kSparse) {
    add_words(request, result, row, request.spec.prompt.back());
    event.sparse = model::sparse_vector(head_.sparse, std::exchange(request.word_sums, {}),
                                        std::exchange(request.token_weights, {}));
    const auto is_finite = [](const WordWeight& word) { return std::isfinite(word.weight); };
    if (!std::ranges::all_of(event.sparse, is_finite)) request.fault = not_finite();
    return;
  }
  if (request.rules.pooling != Pooling::kFirst || request.n_summed == 0) add_hidden(request, result, row);
  event.embedding = vector_of(request);
  const auto is_finite = [](float x) { return std::isfinite(x); };
  if (!std::ranges::all_of(event.embedding, is_finite)) request.fault = not_finite();
}

}  // namespace candor::engine
