#include "model/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "base/checked.h"

namespace candor::model {
namespace {

constexpr int32_t kStates = 2;  // in turn

double log_sum_exp(std::span<const float> logits) {
  const double largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

}  // namespace

Scorer::Scorer(Model& model, backend::Backend& backend, const ScorerOptions& options)
    : model_(model), backend_(backend), options_(options) {}

Result<std::unique_ptr<Scorer>> Scorer::make(Model& model, backend::Backend& backend, const ScorerOptions& options) {
  const int32_t limit = model.spec().max_positions;
  if (options.max_tokens < 1 || options.max_tokens > limit) {
    return fail(ErrorKind::kContextLength,
                fmt::format("texts of {} tokens; expected 1 to {}, the model's context", options.max_tokens, limit));
  }
  if (options.chunk_rows < 1) {
    return fail(ErrorKind::kInvalidInput, fmt::format("chunks of {} rows; expected 1 or more", options.chunk_rows));
  }
  std::unique_ptr<Scorer> scorer(new Scorer(model, backend, options));
  const int32_t n_blocks = ceil_div(options.max_tokens, backend::kBlockTokens);
  CANDOR_TRY(model.reserve(options.chunk_rows, options.chunk_rows, options.max_tokens));
  CANDOR_ASSIGN(scorer->kv_, backend.make_kv(model.kv_layout(options.kv_type), {n_blocks, kStates}));
  scorer->blocks_.resize(static_cast<size_t>(n_blocks));
  std::iota(scorer->blocks_.begin(), scorer->blocks_.end(), 0);
  return scorer;
}

Result<void> Scorer::check(std::span<const TokenId> tokens) const {
  if (tokens.size() > static_cast<size_t>(options_.max_tokens)) {
    return fail(ErrorKind::kContextLength,
                fmt::format("a text of {} tokens; expected at most {}", tokens.size(), options_.max_tokens));
  }
  const int32_t vocab = model_.spec().vocab;
  const auto odd = std::ranges::find_if(tokens, [&](TokenId token) { return token < 0 || token >= vocab; });
  if (odd == tokens.end()) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("token {} at position {}; the model has tokens 0 to {}", *odd,
                                                    odd - tokens.begin(), vocab - 1));
}

Result<void> Scorer::visit_logits(std::span<const TokenId> tokens, const Visit& visit) {
  CANDOR_TRY(check(tokens));
  std::vector<int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), 0);
  const size_t chunk = static_cast<size_t>(options_.chunk_rows);
  StateId state = kNoState;
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t n = std::min(chunk, tokens.size() - begin);
    const int32_t n_rows = static_cast<int32_t>(n);
    const backend::SeqSlice slice{.n_rows = n_rows,
                                  .n_past = static_cast<int32_t>(begin),
                                  .state = state,
                                  .n_uses = static_cast<int32_t>(options_.uses.size())};
    state = (state + 1) % kStates;
    const backend::StateSave save{n_rows - 1, state};
    const backend::StepBatch batch{.tokens = tokens.subspan(begin, n),
                                   .positions = std::span(positions).subspan(begin, n),
                                   .seqs = std::span(&slice, 1),
                                   .block_table = blocks_,
                                   .max_blocks = static_cast<int32_t>(blocks_.size()),
                                   .out_rows = std::span(positions).first(n),
                                   .saves = std::span(&save, 1),
                                   .uses = options_.uses};
    const backend::LogitsView logits = backend_.read_logits(model_.launch(batch, *kv_));
    CANDOR_TRY(backend_.health());
    for (int32_t row = 0; row < n_rows; ++row) visit(begin + static_cast<size_t>(row), logits.row(row));
  }
  return {};
}

Result<std::vector<double>> Scorer::logprobs(std::span<const TokenId> tokens) {
  std::vector<double> result;
  CANDOR_TRY(visit_logits(tokens, [&](size_t i, std::span<const float> logits) {
    if (i + 1 < tokens.size()) result.push_back(logprob_of(logits, tokens[i + 1]));
  }));
  return result;
}

double logprob_of(std::span<const float> logits, TokenId token) {
  return static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum_exp(logits);
}

double kl_divergence(std::span<const float> truth, std::span<const float> other) {
  CANDOR_CHECK(truth.size() == other.size());
  const double truth_norm = log_sum_exp(truth);
  const double other_norm = log_sum_exp(other);
  double sum = 0.0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double truth_log = static_cast<double>(truth[i]) - truth_norm;
    sum += std::exp(truth_log) * (truth_log - (static_cast<double>(other[i]) - other_norm));
  }
  return sum;
}

double perplexity(std::span<const double> logprobs) {
  if (logprobs.empty()) return 1.0;
  const double sum = std::accumulate(logprobs.begin(), logprobs.end(), 0.0);
  return std::exp(-sum / static_cast<double>(logprobs.size()));
}

}  // namespace candor::model
