// Conversations in Anthropic's blocks, as the messages that a template is shown.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/anthropic/requests.h"

namespace candor::serve::anthropic {
namespace {

const ModelForm kTakesNone{.takes_system = false, .takes_late_system = false};
const ModelForm kTakesFirst{.takes_system = true, .takes_late_system = false};
const ModelForm kTakesAll{.takes_system = true, .takes_late_system = true};

constexpr const char* kCall =
    R"({"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"look","input":{"at":"sky"}}]})";
constexpr const char* kResult =
    R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"blue"}]})";

struct Read {
  std::vector<std::string> messages;  // "role: content"
  ChatPrompt chat;
  std::vector<std::string> warnings;
  std::string fault;
};

Read read(const std::string& body, const ModelForm& form = kTakesAll) {
  const Json json = Json::parse(body);
  Fields fields(json);
  ApiLimits limits;
  limits.takes_images = true;
  Read read;
  if (auto chat = read_conversation(fields, form, limits, read.warnings)) read.chat = std::move(*chat);
  for (const Message& message : read.chat.messages) read.messages.push_back(message.role + ": " + message.content);
  if (fields.fault()) read.fault = fields.fault()->message;
  return read;
}

using Texts = std::vector<std::string>;

TEST(conversation, blocks_of_the_system_and_of_a_user_are_paragraphs) {
  const Read got = read(R"({"system":[{"type":"text","text":"Be kind"},{"type":"text","text":"Be short"}],
      "messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]})");
  EXPECT_EQ(got.messages, (Texts{"system: Be kind\n\nBe short", "user: a\n\nb"}));
  EXPECT_TRUE(got.warnings.empty());
  EXPECT_TRUE(got.chat.add_generation_prompt);
}

TEST(conversation, the_billing_block_alone_is_left_out_and_named) {
  const Read got = read(R"({"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=9;"},
      {"type":"text","text":"x-anthropic-billing-header: is a name\nof a header"}],
      "messages":[{"role":"user","content":"x-anthropic-billing-header: a"}]})");
  EXPECT_EQ(got.messages, (Texts{"system: x-anthropic-billing-header: is a name\nof a header",
                                 "user: x-anthropic-billing-header: a"}));
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_TRUE(got.warnings[0].starts_with("system[0].text is an x-anthropic-billing-header")) << got.warnings[0];
}

TEST(conversation, a_late_message_of_the_system_stays_where_it_is_or_joins_its_neighbour) {
  const std::string body = R"({"system":"S","messages":[{"role":"user","content":"a"},{"role":"system","content":"T"},
      {"role":"assistant","content":"b"},{"role":"system","content":"U"},{"role":"user","content":"c"}]})";
  EXPECT_EQ(read(body).messages, (Texts{"system: S", "user: a", "system: T", "assistant: b", "system: U", "user: c"}));
  const Read first = read(body, kTakesFirst);
  EXPECT_EQ(first.messages, (Texts{"system: S", "user: a\n\nT", "assistant: b", "user: U\n\nc"}));
  ASSERT_EQ(first.warnings.size(), 2u);
  EXPECT_TRUE(first.warnings[0].starts_with("messages[1] is folded")) << first.warnings[0];
  EXPECT_EQ(read(body, kTakesNone).messages, (Texts{"user: S\n\na\n\nT", "assistant: b", "user: U\n\nc"}));
}

TEST(conversation, nothing_comes_between_a_call_and_its_result) {
  const std::string body = R"({"messages":[{"role":"user","content":"a"},)" + std::string(kCall) +
                           R"(,{"role":"system","content":"T"},)" + kResult + "]}";
  EXPECT_EQ(read(body).messages, (Texts{"user: a", "assistant: ", "tool: blue", "system: T"}));
  EXPECT_EQ(read(body, kTakesFirst).messages, (Texts{"user: a", "assistant: ", "tool: blue\n\nT"}));
}

TEST(conversation, a_message_of_the_system_without_neighbours_is_a_turn) {
  const std::string last = R"({"messages":[{"role":"assistant","content":"a"},{"role":"system","content":"T"}]})";
  EXPECT_EQ(read(last, kTakesFirst).messages, (Texts{"assistant: a", "user: T"}));
  EXPECT_EQ(read(R"({"messages":[{"role":"system","content":"T"}]})").messages, (Texts{"system: T"}));
  EXPECT_EQ(
      read(R"({"system":"S","messages":[{"role":"system","content":"T"},{"role":"user","content":"a"}]})").messages,
      (Texts{"system: S", "system: T", "user: a"}));
  EXPECT_EQ(
      read(R"({"system":"S","messages":[{"role":"system","content":"T"},{"role":"user","content":"a"}]})", kTakesFirst)
          .messages,
      (Texts{"system: S\n\nT", "user: a"}));
}

TEST(conversation, words_of_the_system_between_answers_stay_between_them) {
  const std::string body = R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
      {"role":"system","content":"T"},{"role":"assistant","content":"c"}]})";
  EXPECT_EQ(read(body, kTakesFirst).messages, (Texts{"user: a", "assistant: b", "user: T", "assistant: c"}));
  EXPECT_EQ(read(body).messages, (Texts{"user: a", "assistant: b", "system: T", "assistant: c"}));
}

TEST(conversation, thinking_calls_and_results_are_what_a_chat_would_replay) {
  const Read got = read(R"({"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Let me "},
        {"type":"text","text":"see"},{"type":"tool_use","id":"t1","name":"look","input":{"at":"sky"}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":false,"cache_control":{"type":"ephemeral"},
        "content":[{"type":"text","text":"blue"}]},{"type":"text","text":"and?"}]}]})");
  EXPECT_EQ(got.messages, (Texts{"user: a", "assistant: Let me see", "tool: blue", "user: and?"}));
  const Json extra = Json::parse(got.chat.messages[1].extra_json);
  EXPECT_EQ(extra["reasoning_content"], "hm");
  EXPECT_EQ(extra["tool_calls"],
            Json::parse(R"([{"id":"t1","type":"function","function":{"name":"look","arguments":{"at":"sky"}}}])"));
  EXPECT_EQ(Json::parse(got.chat.messages[2].extra_json)["tool_call_id"], "t1");
}

TEST(conversation, arguments_that_are_no_object_are_replayed_as_they_are) {
  const auto replayed = [](const std::string& input) {
    const Read got =
        read(R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":)" + input +
             R"(}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]})");
    EXPECT_EQ(got.fault, "") << input;
    return Json::parse(got.chat.messages.at(0).extra_json)["tool_calls"][0]["function"]["arguments"];
  };
  EXPECT_EQ(replayed(R"("{\"a\":")"), "{\"a\":");
  EXPECT_EQ(replayed(R"("{\"a\":1}")"), (Json{{"a", 1}}));
  EXPECT_EQ(replayed("[1]"), "[1]");
  EXPECT_EQ(replayed("null"), Json::object());
}

TEST(conversation, an_answer_at_the_end_is_continued) {
  const Read got = read(R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"Once"}]})");
  EXPECT_TRUE(got.chat.continue_final);
  EXPECT_FALSE(got.chat.add_generation_prompt);
  EXPECT_FALSE(read(R"({"messages":[)" + std::string(kCall) + "]}").chat.continue_final);
}

TEST(conversation, results_without_a_call_and_second_ones_are_refused_with_their_place) {
  const std::string orphan = R"({"messages":[)" + std::string(kResult) + "]}";
  EXPECT_NE(read(orphan).fault.find("messages[0].content[0].tool_use_id \"t1\" belongs to no tool_use"),
            std::string::npos)
      << read(orphan).fault;
  const std::string twice = R"({"messages":[)" + std::string(kCall) + "," + kResult + "," + kResult + "]}";
  EXPECT_NE(read(twice).fault.find("messages[2].content[0].tool_use_id"), std::string::npos);
  const std::string same = R"({"messages":[)" + std::string(kCall) + "," + kResult + "," + kCall + "]}";
  EXPECT_NE(read(same).fault.find("messages[2].content[0].id \"t1\" is that of an earlier tool_use"),
            std::string::npos);
}

constexpr const char* kImage =
    R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0K"}})";

std::string content_of(const Message& message) {
  const Json extra = message.extra_json.empty() ? Json::object() : Json::parse(message.extra_json);
  return extra.contains("content") ? extra["content"].dump() : message.content;
}

TEST(conversation, images_stand_between_the_texts_as_they_were_sent) {
  const Read got = read(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},)" + std::string(kImage) +
                        R"(,{"type":"text","text":"b"}]}]})");
  ASSERT_EQ(got.chat.messages.size(), 1u) << got.fault;
  EXPECT_EQ(content_of(got.chat.messages[0]),
            R"([{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}])");
  EXPECT_EQ(got.chat.messages[0].images, (Texts{"\x89PNG\r\n"}));
}

TEST(conversation, words_of_the_system_join_a_message_with_images_and_are_not_lost) {
  const std::string body = R"({"system":"Be kind","messages":[{"role":"user","content":[)" + std::string(kImage) +
                           R"(,{"type":"text","text":"b"}]},{"role":"system","content":"Be short"}]})";
  const Read got = read(body, kTakesNone);
  ASSERT_EQ(got.chat.messages.size(), 1u) << got.fault;
  EXPECT_EQ(content_of(got.chat.messages[0]),
            R"([{"type":"text","text":"Be kind\n\n"},{"type":"image"},{"type":"text","text":"b"},)"
            R"({"type":"text","text":"\n\nBe short"}])");
  EXPECT_EQ(got.chat.messages[0].images.size(), 1u);
}

TEST(conversation, images_of_results_stand_in_the_users_message_behind_all_of_them) {
  const std::string result = R"({"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"blue"},)" +
                             std::string(kImage) + "]}";
  const std::string body = R"({"messages":[{"role":"user","content":"a"},)" + std::string(kCall) +
                           R"(,{"role":"user","content":[)" + result + "]}]}";
  const Read got = read(body);
  ASSERT_EQ(got.messages, (Texts{"user: a", "assistant: ", "tool: blue", "user: "})) << got.fault;
  EXPECT_EQ(content_of(got.chat.messages[3]), R"([{"type":"image"}])");
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_TRUE(got.warnings[0].starts_with("messages[2].content[0].content[1].source is shown")) << got.warnings[0];
}

}  // namespace
}  // namespace candor::serve::anthropic
