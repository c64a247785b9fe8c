#include "model/rank_cost.h"

#include <gtest/gtest.h>

namespace candor::model {
namespace {

// Llama 3.1 8B.
constexpr RankShape kShape{.n_layers = 32, .heads_width = 4096, .dim = 4096, .ffn_width = 14336, .vocab = 128256};

TEST(rank_cost, one_rank_says_nothing) {
  const ExpectedTraffic traffic = expected_traffic(kShape, 1, 1, 1);
  EXPECT_EQ(traffic.n_exchanges, 0);
  EXPECT_EQ(traffic.sent_bytes, 0);
  EXPECT_EQ(exchange_seconds(traffic, known_links().front()), 0);
}

TEST(rank_cost, a_decoded_token_of_8b_takes_130_exchanges) {
  const ExpectedTraffic traffic = expected_traffic(kShape, 2, 1, 1);
  EXPECT_EQ(traffic.n_exchanges, 130);
  // 4 bytes x half of 32 x (4096 + 2 x 4096 + 14336), and half of the logits.
  EXPECT_DOUBLE_EQ(traffic.sent_bytes, 4 * (32 * 26624 / 2 + 128256 / 2));
  const Link link{"", 1.25e9, 25e-6};
  EXPECT_NEAR(exchange_seconds(traffic, link), 130 * 25e-6 + traffic.sent_bytes / 1.25e9, 1e-12);
}

TEST(rank_cost, rows_without_tokens_send_no_logits) {
  EXPECT_DOUBLE_EQ(expected_traffic(kShape, 4, 512, 0).sent_bytes, 4 * 512 * (32 * 26624 * 0.75 + 4096 * 3));
}

TEST(rank_cost, rows_that_products_encode_take_fewer_bytes) {
  RankShape shape = kShape;
  shape.input_bytes = input_bytes_of(4.5);
  EXPECT_DOUBLE_EQ(expected_traffic(shape, 2, 512, 0).sent_bytes,
                   512 * (32 * (292.0 / 256 * (4096 + 14336) + 4 * 8192) / 2 + 4 * 4096));
  EXPECT_EQ(input_bytes_of(16), 4);
}

TEST(rank_cost, links_have_both_rates) {
  for (const Link& link : known_links()) {
    EXPECT_GT(link.bytes_per_s, 0) << link.name;
    EXPECT_GT(link.latency_s, 0) << link.name;
    EXPECT_EQ(find_link(link.name), &link);
  }
  EXPECT_EQ(find_link("pigeon"), nullptr);
}

}  // namespace
}  // namespace candor::model
