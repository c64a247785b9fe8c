#include "backend/wrap/attention_probe.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <variant>

#include "backend/reference/reference_ops.h"

namespace candor::backend {
namespace {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// In place. Returns the share of the sink, which stands beside the scores.
double softmax(std::span<double> scores, double sink) {
  const double greatest = std::max(sink, *std::ranges::max_element(scores));
  double total = std::exp(sink - greatest);
  const double sink_weight = total;
  for (double& score : scores) total += score = std::exp(score - greatest);
  for (double& score : scores) score /= total;
  return sink_weight / total;
}

}  // namespace

void ProbedOps::run(const Op& operation) {
  const auto* attend = std::get_if<op::Attend>(&operation);
  if (attend != nullptr && row_) look(*attend, *row_);
  inner_.run(operation);
}

void ProbedOps::look(const op::Attend& call, int32_t position) {
  const AttnSpec& spec = *call.spec;
  const RowsView queries = backend_.read_rows(call.term.q), keys = backend_.read_rows(call.term.k);
  const int32_t first = spec.window_tokens == 0 ? 0 : std::max(0, position - spec.window_tokens + 1);
  const std::vector<float> slopes = alibi_slopes(spec.n_heads, spec.max_alibi_bias);
  const float* sinks =
      spec.has_sinks ? static_cast<const reference::ReferenceWeight&>(*call.term.sinks).row(0) : nullptr;
  const float* biases =
      spec.bias_reach > 0 ? static_cast<const reference::ReferenceWeight&>(*call.term.biases).row(0) : nullptr;
  const auto piece = [&](const RowsView& rows, int32_t row, int32_t head) {
    const auto head_dim = static_cast<size_t>(spec.head_dim);
    return rows.row(row).subspan(static_cast<size_t>(head) * head_dim, head_dim);
  };
  AttentionShares& shares = shares_.emplace();
  for (int32_t head = 0; head < spec.n_heads; ++head) {
    const int32_t kv_head = head / (spec.n_heads / spec.n_kv_heads);
    const double slope = spec.max_alibi_bias == 0.0f ? 0.0 : static_cast<double>(slopes[static_cast<size_t>(head)]);
    std::vector<double>& of_head = shares.heads.emplace_back(static_cast<size_t>(position) + 1, 0.0);
    for (int32_t p = first; p <= position; ++p) {
      double score = dot(piece(queries, position, head), piece(keys, p, kv_head)) * static_cast<double>(spec.scale);
      const double cap = static_cast<double>(spec.softcap);
      if (cap != 0.0) score = cap * std::tanh(score / cap);
      if (biases != nullptr) {
        const int32_t reach = spec.bias_reach, at = std::clamp(p - position, -reach, reach) + reach;
        score += static_cast<double>(biases[int64_t{head} * (2 * reach + 1) + at]);
      }
      of_head[static_cast<size_t>(p)] = score - slope * (position - p);
    }
    const double sink = sinks == nullptr ? -std::numeric_limits<double>::infinity() : static_cast<double>(sinks[head]);
    const double of_sink = softmax(std::span(of_head).subspan(static_cast<size_t>(first)), sink);
    if (sinks != nullptr) shares.sinks.push_back(of_sink);
  }
}

}  // namespace candor::backend
