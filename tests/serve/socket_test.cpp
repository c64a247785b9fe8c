// /v1/stream over raw frames: several generations on one socket, cancelling, and frames that break the protocol.

#include <map>

#include "serve/socket_client.h"

namespace candor::testing {
namespace {

class sockets : public ServerTest {
 protected:
  static Json story(int n) {
    Json body = user_says("Tell me a story", n);
    body["temperature"] = 1;
    body["seed"] = 3;
    return body;
  }
};

TEST_F(sockets, several_generations_share_one_socket_and_give_the_plain_texts) {
  SocketClient client(port());
  ASSERT_TRUE(client.is_open);
  const std::string plain = post(port(), "/v1/chat/completions", story(30)).json()["choices"][0]["message"]["content"];
  Json body = story(30);
  body["stream"] = true;
  for (const char* id : {"a", "b", "c"}) client.send({{"id", id}, {"method", "chat.completions"}, {"body", body}});
  client.send({{"id", "d"}, {"method", "chat.completions"}, {"body", story(30)}});
  std::map<std::string, std::string> texts;
  for (int n_done = 0; n_done < 4;) {
    const Json frame = client.next_json();
    ASSERT_TRUE(frame.is_object());
    const std::string id = frame["id"];
    ASSERT_NE(frame["event"], "error") << frame;
    if (frame["event"] == "chunk") texts[id] += frame["data"]["choices"][0]["delta"].value("content", "");
    if (frame["event"] == "whole") texts[id] = frame["data"]["choices"][0]["message"]["content"];
    if (frame["event"] != "chunk") ++n_done;
  }
  for (const char* id : {"a", "b", "c", "d"}) EXPECT_EQ(texts[id], plain) << id;
}

TEST_F(sockets, a_generation_is_cancelled_by_its_id) {
  SocketClient client(port());
  Json body = story(400);
  body["stream"] = true;
  body["ignore_eos"] = true;
  client.send({{"id", "long"}, {"method", "chat.completions"}, {"body", body}});
  EXPECT_EQ(client.next_json()["event"], "chunk");
  client.send({{"id", "long"}, {"method", "cancel"}});
  Json frame;
  do frame = client.next_json();
  while (frame.is_object() && frame["event"] == "chunk");
  EXPECT_EQ(frame["event"], "cancelled") << frame;
  EXPECT_TRUE(running().becomes_idle());
}

TEST_F(sockets, what_is_no_request_gets_an_error_and_the_socket_lives) {
  SocketClient client(port());
  client.raw().send(SocketClient::masked('\x81', "hello"));
  EXPECT_EQ(client.next_json()["event"], "error");
  client.send({{"id", 5}});
  EXPECT_EQ(client.next_json()["event"], "error");
  client.send({{"id", "x"}, {"method", "cancel"}});
  EXPECT_EQ(client.next_json()["data"]["error"]["param"], "id");
  client.send({{"id", "x"}, {"method", "completions"}, {"body", {{"prompt", 5}}}});
  EXPECT_EQ(client.next_json()["data"]["error"]["param"], "prompt");
  client.send({{"id", "x"}, {"method", "completions"}, {"body", {{"prompt", "a"}, {"max_tokens", 1}}}});
  EXPECT_EQ(client.next_json()["event"], "whole");
}

TEST_F(sockets, frames_that_break_the_protocol_close_it_with_the_right_code) {
  const auto code_after = [](const std::string& bytes) {
    SocketClient client(port());
    client.raw().send(bytes);
    return client.close_code();
  };
  EXPECT_EQ(code_after(std::string("\x81\x02hi")), 1002);                                            // not masked
  EXPECT_EQ(code_after(SocketClient::masked('\x83', "hi")), 1002);                                   // unknown opcode
  EXPECT_EQ(code_after(SocketClient::masked('\x81', "\xff\xfe")), 1007);                             // not UTF-8
  EXPECT_EQ(code_after(std::string("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14)), 1009);  // 2^63 bytes
}

TEST_F(sockets, a_client_that_leaves_frees_everything) {
  {
    SocketClient client(port());
    Json body = story(400);
    body["ignore_eos"] = true;
    for (int i = 0; i < 4; ++i)
      client.send({{"id", std::to_string(i)}, {"method", "chat.completions"}, {"body", body}});
    body["stream"] = true;
    client.send({{"id", "s"}, {"method", "chat.completions"}, {"body", body}});
    client.next_json();
  }
  EXPECT_TRUE(running().becomes_idle());
}

}  // namespace
}  // namespace candor::testing
