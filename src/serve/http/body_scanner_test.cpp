#include "serve/http/body_scanner.h"

#include <gtest/gtest.h>

namespace candor::http {
namespace {

using BodyState = BodyScanner::State;
constexpr BodyFraming kChunks = {.is_chunked = true};

struct Outcome {
  BodyState state = BodyState::kMore;
  std::string body{};
  size_t n_taken = 0;
  HeadFault fault{};
};

Outcome read(const BodyFraming& framing, const std::string& bytes, size_t piece, uint64_t max_bytes = 1000) {
  BodyScanner scanner(framing, max_bytes);
  Outcome outcome;
  while (scanner.state() == BodyState::kMore && outcome.n_taken < bytes.size()) {
    outcome.n_taken += scanner.take(std::string_view(bytes).substr(outcome.n_taken, piece), outcome.body);
  }
  outcome.state = scanner.state();
  outcome.fault = scanner.fault();
  return outcome;
}

TEST(body_scanner, reads_the_same_body_in_pieces_of_any_size_and_leaves_what_follows) {
  const std::string bytes = "5\r\nhello\r\n00006;name=\"a b\"\r\n world\r\n0\r\n\r\nGET /";
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Outcome outcome = read(kChunks, bytes, piece);
    EXPECT_EQ(outcome.state, BodyState::kWhole) << piece;
    EXPECT_EQ(outcome.body, "hello world");
    EXPECT_EQ(bytes.substr(outcome.n_taken), "GET /");
  }
  EXPECT_EQ(read({.n_bytes = 5}, "helloGET /", 3).body, "hello");
  EXPECT_EQ(read({.n_bytes = 5}, "helloGET /", 100).n_taken, 5u);
  EXPECT_EQ(read({}, "GET /", 100).state, BodyState::kWhole);
}

TEST(body_scanner, refuses_what_two_readers_could_frame_in_two_ways) {
  for (const char* bytes :
       {"-2\r\n", "+2\r\n", "0x10\r\n", "g\r\n", "\r\n", " 5\r\nhello\r\n", "5\nhello\r\n", "2\r\nhello\r\n0\r\n\r\n",
        "10000000000000000\r\n", "00000000000000005\r\n", "5\r\nhello\n0\r\n\r\n", "5;\x01\r\nhello\r\n",
        "0\r\nX: y\r\n\r\n", "0\r\n\n", "5;a\rb\r\nhello\r\n0\r\n\r\n"}) {
    for (const size_t piece : {size_t{1}, size_t{1000}}) {
      const Outcome outcome = read(kChunks, bytes, piece);
      EXPECT_EQ(outcome.state, BodyState::kBad) << bytes;
      EXPECT_EQ(outcome.fault.status, 400) << bytes;
    }
  }
}

TEST(body_scanner, refuses_a_body_beyond_the_limit_by_what_it_announces) {
  EXPECT_EQ(read({.n_bytes = 1001}, "", 1).fault.status, 413);
  EXPECT_EQ(read(kChunks, "3e9\r\n", 1).fault.status, 413);
  EXPECT_EQ(read(kChunks, "ffffffffffffffff\r\n", 1).fault.status, 413);
  EXPECT_EQ(read(kChunks, "3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\n", 64).fault.status, 413);
  EXPECT_EQ(read(kChunks, "3e8\r\n" + std::string(1000, 'x') + "\r\n0\r\n\r\n", 64).state, BodyState::kWhole);
}

TEST(body_scanner, keeps_nothing_of_the_framing_and_bounds_it) {
  const std::string much(1u << 20, 'y');
  EXPECT_EQ(read(kChunks, "0\r\nX: " + much + "\r\n\r\n", 4096).fault.status, 400);
  EXPECT_EQ(read(kChunks, "0\r\n" + much + ": y\r\n\r\n", 4096).fault.status, 400);
  EXPECT_EQ(read(kChunks, "5;" + much + "\r\nhello\r\n", 4096).fault.status, 400);
  EXPECT_EQ(read(kChunks, much, 1).fault.status, 400);
  for (const std::string& chunk : {"1;" + std::string(200, 'e') + "\r\nx\r\n", std::string("1\r\nx\r\n")}) {
    std::string many;
    while (many.size() < 2u << 20) many += chunk;
    const Outcome outcome = read(kChunks, many, 4096, 1u << 30);
    EXPECT_EQ(outcome.fault.status, 400);
    EXPECT_NE(outcome.fault.message.find("between"), std::string::npos);
  }
}

}  // namespace
}  // namespace candor::http
