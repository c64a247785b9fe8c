#pragma once
// Estimates the communication of ranks that share a model: the exchanges and bytes of a step, and the time that they
// take over a link. Pure functions of doubles.

#include <span>
#include <string_view>

namespace candor::model {

// Between ranks: what goes out of each, and how long the first byte takes.
struct Link {
  std::string_view name;
  double bytes_per_s = 0;
  double latency_s = 0;
};

// "shm", "10gbe", "25gbe", "100gbe".
std::span<const Link> known_links();
// nullptr for an unknown name.
const Link* find_link(std::string_view name);

// The widths of rows that are put together, all layers summed.
struct RankShape {
  double n_layers = 0;
  double n_exchanges = 4;  // of one layer, on average
  double heads_width = 0;  // H * Dh of one layer
  double dim = 0;
  double ffn_width = 0;  // of experts: those of a token together
  double vocab = 0;
  double input_bytes = 4;  // of a number that a product reads next: some encode them
};

// Bytes of a product's input number, where weights have that many bits on average: 256 codes of a byte with 16 sums and
// a scale, or floats.
double input_bytes_of(double bits_per_weight);

struct ExpectedTraffic {
  double n_exchanges = 0;
  double sent_bytes = 0;  // by each rank
};
// For a step of n_rows rows that chooses n_out tokens: n_exchanges a layer, one for the embedding and one for
// logits. REQUIRES: n_ranks >= 1.
ExpectedTraffic expected_traffic(const RankShape& shape, double n_ranks, double n_rows, double n_out);

// latency for each exchange, and the bytes at the link's rate.
double exchange_seconds(const ExpectedTraffic& traffic, const Link& link);

}  // namespace candor::model
