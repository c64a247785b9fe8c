// Replies fed with events by hand: what a server under load, or a model of the right kind, would bring about.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/anthropic/requests.h"
#include "serve/client.h"
#include "serve/openai/reply_parts.h"
#include "serve/openai/requests.h"

namespace candor::testing {
namespace {

class reply_events : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = std::move(*Engine::open(Running::defaults().engine)); }
  static void TearDownTestSuite() { engine_.reset(); }

  static serve::ReplyHead head(bool is_stream) {
    serve::ReplyHead head;
    head.id = "a_1";
    head.number = "1";
    head.model = "pocket";
    head.is_stream = is_stream;
    head.form = {.tools = text::ToolForm::kHermes, .has_reasoning = true};
    return head;
  }
  // The model writes this, and ends.
  static void write(serve::Reply& reply, const std::string& text, const serve::Reply::Emit& emit) {
    TokenEvent event;
    event.text = text;
    reply.on_event(0, event, emit);
    TokenEvent last;
    last.finish = FinishReason::kStopEos;
    last.summary.emplace();
    reply.on_event(0, last, emit);
  }
  static inline std::unique_ptr<Engine> engine_;
};

// Claude Code hears no pings: it counts the seconds since the last other event, and leaves after 300.
TEST_F(reply_events, an_anthropic_stream_that_only_waits_says_more_than_ping_every_two_minutes) {
  const auto reply =
      serve::anthropic::make_message_reply(*engine_, head(true), {.n_prompt_tokens = 9, .max_tokens = 4});
  std::vector<Json> events;
  const auto emit = [&](const Json& event) { events.push_back(event); };
  reply->open(0, emit);
  double heard_ms = 0;
  for (double ms = 5000; ms <= 900'000; ms += 5000) {
    reply->on_wait({.ms = ms}, emit);
    const Json& event = events.back();
    if (event["type"] == "ping") continue;
    EXPECT_EQ(event["type"], "message_delta");
    EXPECT_TRUE(event["delta"]["stop_reason"].is_null() && event["delta"]["stop_sequence"].is_null()) << event;
    EXPECT_EQ(event["usage"], Json({{"output_tokens", 0}})) << "clients may sum it up";
    EXPECT_LE(ms - heard_ms, 150'000);
    heard_ms = ms;
  }
  EXPECT_GE(heard_ms, 780'000);
  write(*reply, "Yes", emit);
  reply->close(emit);
  EXPECT_EQ(events[events.size() - 2]["delta"]["stop_reason"], "end_turn");
  EXPECT_EQ(events.back()["type"], "message_stop");
}

constexpr const char* kTwoCalls =
    "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>\n"
    "<tool_call>{\"name\": \"hear\", \"arguments\": {}}</tool_call>";

TEST_F(reply_events, a_further_call_where_one_was_asked_for_is_left_out_and_named) {
  const auto quiet = [](const Json&) {};
  for (const bool only_one : {false, true}) {
    serve::ReplyHead one = head(false);
    one.only_one_call = only_one;
    const auto chat = serve::openai::make_chat_reply(*engine_, one, {}, 1);
    write(*chat, kTwoCalls, quiet);
    const Json told = chat->whole();
    EXPECT_EQ(told["choices"][0]["message"]["tool_calls"].size(), only_one ? 1u : 2u) << told;
    EXPECT_EQ(told.contains("warnings"), only_one) << told;
    const auto message = serve::anthropic::make_message_reply(*engine_, one, {.max_tokens = 99});
    write(*message, kTwoCalls, quiet);
    const Json blocks = message->whole();
    EXPECT_EQ(blocks["content"].size(), only_one ? 1u : 2u) << blocks;
    for (const Json* json : {&told, &blocks}) {
      const std::string warnings = json->value("warnings", Json::array()).dump();
      EXPECT_EQ(warnings.find("a further call, of hear, is left out") != std::string::npos, only_one) << warnings;
    }
  }
}

}  // namespace
}  // namespace candor::testing
