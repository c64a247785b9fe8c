#include "backend/wrap/attention_watch.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "backend/op_specs.h"

namespace candor::backend {
namespace {

int32_t oldest_seen(const AttnSpec& spec, int32_t position) {
  if (spec.chunk_tokens > 0) return position - position % spec.chunk_tokens;
  return spec.window_tokens == 0 ? 0 : std::max(0, position - spec.window_tokens + 1);
}

// Several sums, which do not wait for one another.
double dot(std::span<const float> a, const float* b) {
  constexpr size_t kSums = 8;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums) {
    for (size_t j = 0; j < kSums; ++j) sums[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
  }
  double sum = 0.0;
  for (const double part : sums) sum += part;
  for (; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void add_softmax(std::span<double> scores, double* sums) {
  const double greatest = *std::ranges::max_element(scores);
  double total = 0.0;
  for (double& score : scores) total += score = std::exp(score - greatest);
  for (const double score : scores) *sums++ += score / total;
}

}  // namespace

void WatchedAttention::begin(const StepBatch& batch, KvStore& kv, std::span<const int32_t> rows) {
  batch_ = batch;
  kv_ = &kv;
  rows_.clear();
  for (const int32_t row : rows) {
    const auto behind = std::ranges::upper_bound(batch.seqs, row, {}, &SeqSlice::first_row);
    const auto seq = static_cast<size_t>(behind - batch.seqs.begin()) - 1;
    const SeqSlice& slice = batch.seqs[seq];
    const int32_t position = slice.n_past + row - slice.first_row;
    rows_.push_back({row, seq, position, 0.0, std::vector<double>(static_cast<size_t>(position) + 1)});
  }
}

void WatchedAttention::run(const Op& operation) {
  const auto* attend = std::get_if<op::Attend>(&operation);
  std::vector<std::vector<float>> queries;  // before what attention writes
  if (attend != nullptr) {
    const RowsView all = backend_.read_rows(attend->term.q);
    for (const LookedRow& looked : rows_) {
      const std::span<const float> query = all.row(looked.row);
      queries.emplace_back(query.begin(), query.end());
    }
  }
  inner_.run(operation);
  for (size_t i = 0; i < queries.size(); ++i) look(*attend->spec, attend->term, queries[i], rows_[i]);
}

void WatchedAttention::look(const AttnSpec& spec, const AttnTerm& term, std::span<const float> queries,
                            LookedRow& looked) {
  const auto head_dim = static_cast<size_t>(spec.head_dim);
  const std::vector<float> slopes = alibi_slopes(spec.n_heads, spec.max_alibi_bias);
  const double cap = static_cast<double>(spec.softcap);
  const int32_t n_group = spec.n_heads / spec.n_kv_heads;
  first_ = oldest_seen(spec, looked.position);
  const auto n_seen = static_cast<size_t>(looked.position - first_) + 1;
  for (int32_t head = 0; head < spec.n_heads; ++head) {
    if (head % n_group == 0) read_keys(spec, term, looked, head / n_group);
    const double slope = spec.max_alibi_bias == 0.0f ? 0.0 : static_cast<double>(slopes[static_cast<size_t>(head)]);
    const std::span<const float> query = queries.subspan(static_cast<size_t>(head) * head_dim, head_dim);
    scores_.resize(n_seen);
    for (size_t i = 0; i < n_seen; ++i) {
      double score = dot(query, keys_.data() + i * head_dim) * static_cast<double>(spec.scale);
      if (cap != 0.0) score = cap * std::tanh(score / cap);
      scores_[i] = score - slope * static_cast<double>(n_seen - 1 - i);
    }
    add_softmax(scores_, looked.sums.data() + first_);
  }
  looked.n_heads += spec.n_heads;
}

void WatchedAttention::read_keys(const AttnSpec& spec, const AttnTerm& term, const LookedRow& looked, int32_t kv_head) {
  const auto head_dim = static_cast<size_t>(spec.head_dim);
  const BlockId* blocks = batch_.block_table.data() + looked.seq * static_cast<size_t>(batch_.max_blocks);
  keys_.assign(static_cast<size_t>(looked.position - first_ + 1) * head_dim, 0.0f);
  for (int32_t position = first_; position <= looked.position; ++position) {
    const BlockId block = blocks[position / kBlockTokens];
    const std::span<float> key(keys_.data() + static_cast<size_t>(position - first_) * head_dim, head_dim);
    if (block != kNoBlock) kv_->read_key({block, position % kBlockTokens, term.layer, kv_head}, key);
  }
}

void AttentionWatch::look_at(std::span<const int32_t> rows) {
  wanted_.assign(rows.begin(), rows.end());
  ops_.rows().clear();
}

std::vector<double> AttentionWatch::shares(int32_t row) {
  std::vector<LookedRow>& rows = ops_.rows();
  const auto looked = std::ranges::find(rows, row, &LookedRow::row);
  if (looked == rows.end() || looked->n_heads == 0) return {};
  std::vector<double> shares = looked->sums;
  for (double& share : shares) share /= looked->n_heads;
  return shares;
}

void AttentionWatch::begin_step(const StepBatch& batch, KvStore& kv) {
  is_looking_ = !wanted_.empty();
  if (is_looking_) ops_.begin(batch, kv, std::exchange(wanted_, {}));
  ForwardingBackend::begin_step(batch, kv);
}

StepTicket AttentionWatch::end_step() {
  is_looking_ = false;
  return ForwardingBackend::end_step();
}

}  // namespace candor::backend
