#include "serve/http/head_scanner.h"

#include <gtest/gtest.h>

namespace candor::http {
namespace {

using State = HeadScanner::State;

State scan_in_pieces(const std::string& bytes, size_t piece, HeadScanner& scanner) {
  State state = State::kMore;
  for (size_t n = 0; n < bytes.size() && state == State::kMore;) {
    n = std::min(bytes.size(), n + piece);
    state = scanner.scan(std::string_view(bytes).substr(0, n));
  }
  return state;
}

TEST(head_scanner, a_head_is_whole_at_its_empty_line_however_it_arrives) {
  const std::string head = "POST /v1/x?a=b HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n";
  for (size_t piece = 1; piece <= head.size(); ++piece) {
    HeadScanner scanner({});
    EXPECT_EQ(scan_in_pieces(head, piece, scanner), State::kWhole);
    EXPECT_EQ(scanner.head_bytes(), head.size());
  }
}

TEST(head_scanner, what_follows_the_head_is_not_looked_at) {
  HeadScanner scanner({});
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(scanner.scan(head + "\n\n\x01"), State::kWhole);
  EXPECT_EQ(scanner.head_bytes(), head.size());
}

TEST(head_scanner, every_verdict_is_the_same_in_pieces_and_whole) {
  for (const std::string head :
       {"GET / HTTP/1.1\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/3.0\r\nHost: a\r\n\r\n", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    HeadScanner whole({});
    EXPECT_EQ(whole.scan(head), State::kBad) << head;
    HeadScanner pieces({});
    EXPECT_EQ(scan_in_pieces(head, 1, pieces), State::kBad) << head;
    EXPECT_EQ(whole.fault().status, pieces.fault().status) << head;
  }
}

TEST(head_scanner, a_client_that_speaks_tls_is_told_at_its_first_byte) {
  HeadScanner scanner({});
  EXPECT_EQ(scanner.scan("\x16"), State::kBad);
  EXPECT_EQ(scanner.fault().status, 400);
  EXPECT_NE(scanner.fault().message.find("TLS"), std::string::npos);
}

TEST(head_scanner, limits_hold_before_a_line_has_ended) {
  HeadScanner target({});
  EXPECT_EQ(target.scan("GET /" + std::string(9000, 'a')), State::kBad);
  EXPECT_EQ(target.fault().status, 414);
  HeadScanner field({});
  EXPECT_EQ(field.scan("GET / HTTP/1.1\r\nA: " + std::string(40'000, 'a')), State::kBad);
  EXPECT_EQ(field.fault().status, 431);
}

}  // namespace
}  // namespace candor::http
