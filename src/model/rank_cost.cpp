#include "model/rank_cost.h"

#include <algorithm>
#include <iterator>

namespace candor::model {
namespace {

constexpr double kFloatBytes = 4;
constexpr double kCodeBytes = 292.0 / 256.0;
constexpr double kMostCodeBits = 12;  // formats of more bits take their inputs as they are, or rounded
constexpr Link kLinks[] = {
    {"shm", 6e9, 1.5e-6},
    {"10gbe", 1.25e9, 25e-6},
    {"25gbe", 3.125e9, 25e-6},
    {"100gbe", 12.5e9, 25e-6},
};

}  // namespace

std::span<const Link> known_links() {
  return kLinks;
}

const Link* find_link(std::string_view name) {
  const auto* found = std::ranges::find(kLinks, name, &Link::name);
  return found == std::end(kLinks) ? nullptr : found;
}

double input_bytes_of(double bits_per_weight) {
  return bits_per_weight <= kMostCodeBits ? kCodeBytes : kFloatBytes;
}

ExpectedTraffic expected_traffic(const RankShape& shape, double n_ranks, double n_rows, double n_out) {
  if (n_ranks <= 1) return {};
  const double inputs = shape.input_bytes * (shape.heads_width + shape.ffn_width);
  const double outputs = kFloatBytes * 2 * shape.dim;
  const double to_each_other = (n_ranks - 1) / n_ranks;
  const double rows = n_rows * shape.n_layers * (inputs + outputs) * to_each_other;
  const double embedding = n_rows * shape.dim * (n_ranks - 1);
  return {shape.n_exchanges * shape.n_layers + 2,
          rows + kFloatBytes * std::max(embedding, n_out * shape.vocab / n_ranks)};
}

double exchange_seconds(const ExpectedTraffic& traffic, const Link& link) {
  return traffic.n_exchanges * link.latency_s + traffic.sent_bytes / link.bytes_per_s;
}

}  // namespace candor::model
