// What frames a body: chunks, their extensions and trailers, and bodies where none is meant.

#include "serve/client.h"

namespace candor::testing {
namespace {

class framing : public ServerTest {
 protected:
  static ClientReply reply_to(const std::string& bytes) {
    RawClient client(port());
    client.send(bytes);
    return parse_reply(client.read_all(std::chrono::seconds(10)));
  }
  static bool is_alive() { return ask(port(), "GET", "/health").status == 200; }
};

const std::string kChunkedGet = "GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kChunkedPost = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kChunk = "f\r\n{\"content\":\"a\"}\r\n";

TEST_F(framing, trailers_of_any_size_are_refused_and_the_server_lives) {
  const std::string much(100'000, 'y');
  for (const std::string& trailer : {"X: " + much, much + ": x", much, std::string("X: y"), std::string(" ")}) {
    EXPECT_EQ(reply_to(kChunkedPost + kChunk + "0\r\n" + trailer + "\r\n\r\n").status, 400) << trailer.substr(0, 9);
    EXPECT_EQ(reply_to(kChunkedGet + "0\r\n" + trailer + "\r\n\r\n").status, 400) << trailer.substr(0, 9);
    EXPECT_TRUE(is_alive());
  }
  std::string post = kChunkedPost;
  post.insert(post.find("\r\n") + 2, "Connection: close\r\n");
  EXPECT_EQ(reply_to(post + kChunk + "0\r\n\r\n").status, 200);
}

TEST_F(framing, a_body_in_chunks_is_the_same_body) {
  const std::string whole = ask(port(), "POST", "/tokenize", R"({"content":"a"})").body;
  std::string pieces;
  for (const char c : std::string(R"({"content":"a"})")) pieces += std::string("1;ext=\"v\"\r\n") + c + "\r\n";
  RawClient client(port());
  for (const char c : kChunkedPost + pieces + "0\r\n\r\n") client.send({&c, 1});
  const ClientReply reply = parse_reply(client.read_until("}", std::chrono::seconds(10)));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, whole);
}

TEST_F(framing, what_stands_between_chunks_takes_no_memory) {
  const int64_t before = trimmed_resident_bytes();
  RawClient client(port());
  client.send(kChunkedPost);
  const std::string part(1u << 20, 'e');
  client.send("1;");
  for (int i = 0; i < 64 && client.send(part); ++i) {
  }
  EXPECT_EQ(parse_reply(client.read_until("\r\n\r\n")).status, 400);
  EXPECT_LT(trimmed_resident_bytes(), before + (16 << 20));
}

TEST_F(framing, no_body_is_read_where_none_is_meant) {
  for (const char* method : {"GET", "HEAD", "OPTIONS", "DELETE"}) {
    const std::string head = std::string(method) + " /health HTTP/1.1\r\nHost: localhost\r\n";
    const ClientReply reply = reply_to(head + "Content-Length: 1000000\r\n\r\n");  // which never comes
    EXPECT_GE(reply.status, 200) << method;
    EXPECT_NE(reply.head.find("connection: close"), std::string::npos) << method;
    EXPECT_GT(reply_to(head + "Transfer-Encoding: chunked\r\n\r\n").status, 0) << method;
  }
  EXPECT_EQ(reply_to("GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc").status, 400);
  EXPECT_EQ(
      reply_to("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").status,
      200);
}

}  // namespace
}  // namespace candor::testing
