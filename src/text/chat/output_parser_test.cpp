#include "text/chat/output_parser.h"

#include <gtest/gtest.h>

#include "text/chat/call_json.h"

namespace candor::text {
namespace {

using Kind = OutputPiece::Kind;
using Pieces = std::vector<OutputPiece>;

OutputPiece content(std::string text) {
  return {.kind = Kind::kContent, .text = std::move(text)};
}
OutputPiece reasoning(std::string text) {
  return {.kind = Kind::kReasoning, .text = std::move(text)};
}
OutputPiece call(std::string name, std::string arguments) {
  return {.kind = Kind::kCall, .text = std::move(arguments), .name = std::move(name)};
}

// Fed in pieces of `size` bytes; neighbours of one kind joined.
Pieces parse(const std::string& text, const OutputForm& form, size_t size) {
  OutputParser parser(form);
  Pieces all;
  const auto add = [&all](const Pieces& more) {
    for (const OutputPiece& piece : more) {
      if (!all.empty() && piece.kind != Kind::kCall && all.back().kind == piece.kind) {
        all.back().text += piece.text;
      } else {
        all.push_back(piece);
      }
    }
  };
  for (size_t at = 0; at < text.size(); at += size) add(parser.push(std::string_view(text).substr(at, size)));
  add(parser.finish());
  return all;
}

void expect_pieces(const std::string& text, const OutputForm& form, const Pieces& expected) {
  for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, text.size()}) {
    EXPECT_EQ(parse(text, form, size), expected) << text << " in pieces of " << size;
  }
}

TEST(output_parser, plain_text_passes_whatever_the_form) {
  for (const ToolForm form :
       {ToolForm::kNone, ToolForm::kHermes, ToolForm::kLlama, ToolForm::kMistral, ToolForm::kDeepSeek}) {
    expect_pieces("a < b <tool> [TOOL", {.tools = form, .has_reasoning = true}, {content("a < b <tool> [TOOL")});
  }
}

TEST(output_parser, hermes_calls_stand_between_tags) {
  expect_pieces(
      "Sure.<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": "
      "1}}\n</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>",
      {.tools = ToolForm::kHermes}, {content("Sure."), call("f", "{\"a\":1}"), call("g", "{}")});
}

TEST(output_parser, a_call_that_cannot_be_read_comes_back_as_text) {
  expect_pieces("<tool_call>{\"name\": }</tool_call>!", {.tools = ToolForm::kHermes},
                {content("<tool_call>{\"name\": }!")});
  expect_pieces("{\"a\": 1}", {.tools = ToolForm::kLlama}, {content("{\"a\": 1}")});
}

TEST(output_parser, llama_calls_are_the_whole_answer) {
  expect_pieces(" {\"name\": \"f\", \"parameters\": {\"x\": \"}\"}}", {.tools = ToolForm::kLlama},
                {call("f", "{\"x\":\"}\"}")});
  expect_pieces("<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", {.tools = ToolForm::kLlama}, {call("f", "{}")});
  expect_pieces("No {\"name\": \"f\"}", {.tools = ToolForm::kLlama}, {content("No {\"name\": \"f\"}")});
}

TEST(output_parser, mistral_calls_are_a_list) {
  expect_pieces("[TOOL_CALLS][{\"name\":\"f\",\"arguments\":{\"a\":1}},{\"name\":\"g\",\"arguments\":{}}]",
                {.tools = ToolForm::kMistral}, {call("f", "{\"a\":1}"), call("g", "{}")});
}

TEST(output_parser, deepseek_calls_have_a_separator) {
  const std::string bar = "\xef\xbd\x9c", low = "\xe2\x96\x81";
  const auto mark = [&](const std::string& words) { return "<" + bar + words + bar + ">"; };
  const std::string text = mark("tool" + low + "calls" + low + "begin") + mark("tool" + low + "call" + low + "begin") +
                           "function" + mark("tool" + low + "sep") + "f\n```json\n{\"a\": 1}\n```" +
                           mark("tool" + low + "call" + low + "end") + mark("tool" + low + "calls" + low + "end");
  expect_pieces(text, {.tools = ToolForm::kDeepSeek}, {call("f", "{\"a\":1}")});
}

TEST(output_parser, harmony_channels_are_reasoning_calls_and_content) {
  expect_pieces(
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
      "<|constrain|>json<|message|>{\"a\":1}<|call|>",
      {.tools = ToolForm::kGptOss}, {reasoning("hm"), call("f", "{\"a\":1}")});
  expect_pieces("<|channel|>final<|message|>Hi<|return|>", {.tools = ToolForm::kGptOss}, {content("Hi")});
}

TEST(output_parser, reasoning_is_split_from_what_follows) {
  expect_pieces("<think>a<b</think>c", {.has_reasoning = true}, {reasoning("a<b"), content("c")});
  expect_pieces("a</think>c", {.has_reasoning = true, .opens_in_reasoning = true}, {reasoning("a"), content("c")});
  expect_pieces("<think>never ends", {.has_reasoning = true}, {reasoning("never ends")});
}

TEST(output_parser, a_bare_call_may_stand_behind_reasoning) {
  expect_pieces("I should look.</think>\n\n{\"name\": \"f\", \"parameters\": {}}",
                {.tools = ToolForm::kLlama, .has_reasoning = true, .opens_in_reasoning = true},
                {reasoning("I should look."), call("f", "{}")});
}

TEST(output_parser, a_million_beginnings_of_markers_take_linear_time) {
  OutputParser parser({.tools = ToolForm::kHermes, .has_reasoning = true});
  size_t n_bytes = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    for (const OutputPiece& piece : parser.push("<")) n_bytes += piece.text.size();
  }
  EXPECT_GE(n_bytes, 999'000u);
}

TEST(output_parser, calls_nested_deeper_than_the_limit_come_back_as_text) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  const auto arguments = [&](size_t depth) { return "{\"a\":" + nested(depth - 1) + "}"; };
  const auto hermes = [&](const std::string& inner) { return "{\"name\": \"f\", \"arguments\": " + inner + "}"; };
  const OutputForm form{.tools = ToolForm::kHermes};
  const std::string shallow = arguments(kMaxCallDepth - 1);
  EXPECT_EQ(parse("<tool_call>" + hermes(shallow) + "</tool_call>", form, 1000), (Pieces{call("f", shallow)}));
  for (const size_t depth : {kMaxCallDepth, size_t{120'000}, size_t{1'000'000}}) {
    const std::string deep = "<tool_call>" + hermes(arguments(depth));
    EXPECT_EQ(parse(deep + "</tool_call>", form, 4096), (Pieces{content(deep)})) << depth;
    EXPECT_EQ(parse(arguments(depth), {.tools = ToolForm::kLlama}, 4096), (Pieces{content(arguments(depth))}));
  }
  const std::string deep = arguments(1'000'000);
  const std::string harmony = "<|channel|>commentary to=functions.f<|message|>" + deep;
  EXPECT_EQ(parse(harmony + "<|call|>", {.tools = ToolForm::kGptOss}, 4096).back().kind, Kind::kContent);
  EXPECT_EQ(parse("[TOOL_CALLS][" + deep, {.tools = ToolForm::kMistral}, 4096).back().kind, Kind::kContent);
  const std::string bar = "\xef\xbd\x9c", low = "\xe2\x96\x81";
  const std::string deepseek = "<" + bar + "tool" + low + "call" + low + "begin" + bar + ">f<" + bar + "tool" + low +
                               "sep" + bar + ">" + deep;
  EXPECT_EQ(parse(deepseek, {.tools = ToolForm::kDeepSeek}, 4096).back().kind, Kind::kContent);
  std::string quoted = hermes("\"");
  quoted.insert(quoted.size() - 1, "[[[[[[" + std::string(500'000, '[') + "\"");
  EXPECT_EQ(parse("<tool_call>" + quoted, form, 4096).back().kind, Kind::kContent);
}

TEST(output_parser, of_a_key_that_stands_twice_the_last_value_counts) {
  expect_pieces("{\"name\": \"e\", \"parameters\": {\"x\": 1, \"y\": 2, \"x\": 3}, \"name\": \"f\"}",
                {.tools = ToolForm::kLlama}, {call("f", "{\"x\":3,\"y\":2}")});
}

// Each of these takes minutes where what is held back is looked at anew for each push, marker or key.
TEST(output_parser, what_is_held_back_is_looked_at_once) {
  OutputParser spaces({.tools = ToolForm::kLlama});
  for (int i = 0; i < 1'000'000; ++i) EXPECT_TRUE(spaces.push(" ").empty());
  EXPECT_EQ(spaces.finish().front().text.size(), 1'000'000u);

  std::string marks;
  for (int i = 0; i < 300'000; ++i) marks += "<|end|>";
  EXPECT_TRUE(parse(marks, {.tools = ToolForm::kGptOss}, marks.size()).empty());

  std::string keys = "{\"name\":\"f\",\"parameters\":{\"k\":0";
  for (int i = 0; i < 300'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(parse(keys + "}}", {.tools = ToolForm::kLlama}, 1).front().name, "f");
}

}  // namespace
}  // namespace candor::text
