#include "text/chat/output_parser.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace candor::text
