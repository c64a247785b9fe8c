// Constraints that would take all the time or all the memory: each is its own client's error, and nobody else notices.

#include <algorithm>
#include <thread>

#include "serve/client.h"

namespace candor::testing {
namespace {

class sandbox_input : public ServerTest {
 protected:
  static ClientReply ask_schema(const Json& schema) {
    Json body = user_says("hi", 3);
    body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
    return post(port(), "/v1/chat/completions", body);
  }
  static void expect_refused(const ClientReply& reply) {
    EXPECT_EQ(reply.status, 400) << reply.body.substr(0, 300);
    EXPECT_EQ(Json::parse(reply.body)["error"]["param"], "response_format") << reply.body.substr(0, 300);
  }
};

TEST_F(sandbox_input, a_constraint_that_outlives_its_time_leaves_chat_to_everyone) {
  const int64_t before = trimmed_resident_bytes();
  for (int i = 0; i < 4; ++i) expect_refused(ask_schema({{"type", "integer"}, {"multipleOf", 9999991}}));
  EXPECT_EQ(post(port(), "/v1/chat/completions", user_says("hi", 3)).status, 200);
  EXPECT_EQ(ask_schema({{"type", "integer"}, {"multipleOf", 7}}).status, 200);
  EXPECT_LT(trimmed_resident_bytes(), before + (int64_t{64} << 20));
}

TEST_F(sandbox_input, a_schema_that_needs_eighty_thousand_names_is_refused) {
  Json names = Json::array();
  for (int i = 0; i < 80'000; ++i) names.push_back("p" + std::to_string(i));
  expect_refused(ask_schema({{"type", "object"}, {"required", std::move(names)}}));
  EXPECT_EQ(post(port(), "/v1/chat/completions", user_says("hi", 3)).status, 200);
}

TEST_F(sandbox_input, chat_goes_on_beside_constraints_that_use_up_their_time) {
  std::thread hostile([] {
    for (int i = 0; i < 3; ++i) expect_refused(ask_schema({{"type", "integer"}, {"multipleOf", 9999991 - 2 * i}}));
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(post(port(), "/v1/chat/completions", user_says("hi", 3)).status, 200);
  hostile.join();
}

TEST(sandbox_shutdown, a_server_that_is_told_to_end_does_not_wait_for_a_constraint) {
  auto running = std::make_unique<Running>();
  std::thread client([port = running->port()] {
    Json body = user_says("hi", 3);
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "x"}, {"schema", {{"type", "integer"}, {"multipleOf", 9999991}}}}}};
    const ClientReply reply = post(port, "/v1/chat/completions", body);
    EXPECT_TRUE(reply.status == 503 || reply.status == 400) << reply.body;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  running->service().begin_drain();
  running->service().abort_all();
  client.join();
  running.reset();
}

}  // namespace
}  // namespace candor::testing
