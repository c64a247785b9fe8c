// Forms whose calls are JSON: hermes, Llama, Mistral, DeepSeek, harmony, Kimi, Granite.
#include "text/chat/forms/forms_test_support.h"

namespace candor::text {
namespace {

// What JSON a form may not take for a call, whatever stands around it: each with what is left when its end mark is
// gone.
const std::vector<std::string> kBadCalls = {
    R"({"name": })",
    R"({"name": "f", "arguments": )",
    R"({"name": "f", "arguments": {"a": 1})",
    R"({"name": "f", "arguments": {"a": "x)",
    R"({"name": 7, "arguments": {}})",
    R"({"arguments": {"a": 1}})",
    R"({"name": "f", "arguments": [1]})",
    R"({"name": "f", "arguments": "no json"})",
    R"({"name": "f", "arguments": {"a": 1]})",
    R"({"name": "f" "arguments": {}})",
    R"({"name": "f", "arguments": {"a": tru}})",
    "{\"name\": \"f\", \"arguments\": {\"a\": \"line\nbreak\"}}",
    R"("f")",
    "f(1)",
};
const std::vector<std::string> kBadArguments = {
    "", "7", "\"a\"", "[1]", "{\"a\": }", "{\"a\": 1", "{\"a\": \"x", "{\"a\" 1}", "{\"a\": 1]}", "{a: 1}", "{'a': 1}",
    "{\"a\": 01}",
};

// Between the marks of a form, the end mark being dropped with what it ends.
void expect_none_of(const std::vector<std::string>& bodies, ToolForm form, const std::string& open,
                    const std::string& close) {
  for (const std::string& body : bodies) {
    const Parsed whole = parse_cut(open + body + close, {.tools = form, .types = weather_types()}, {});
    expect_form({open + body + close, whole.line}, {.tools = form, .types = weather_types()}, true);
    const std::string kept = open + body;
    EXPECT_TRUE(whole.line == as_content(kept) || whole.line == as_content(kept + close)) << whole.line;
  }
}

TEST(json_forms, hermes_calls_are_read_by_their_json) {
  expect_read(ToolForm::kHermes,
              {{R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)", R"(f{"a":1})"},
               {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "f{}"},
               {R"(<tool_call>{"name":"f"}</tool_call>)", "f{}"},
               {R"(<tool_call>{"name":"f","arguments":{"a":"</tool_call>"}}</tool_call>)", R"(f{"a":"</tool_call>"})"},
               {R"(<tool_call>{"name":"f","arguments":{"a":"\"}{[\\"}}</tool_call>.)", R"(f{"a":"\"}{[\\"} '.')"},
               {R"(<tool_call>{"name":"f","arguments":"{\"a\": 1}"}</tool_call>)", R"(f{"a":1})"},
               {R"(<tool_call>[{"name":"f"},{"name":"g","parameters":{"b":[1]}}]</tool_call>)", R"(f{} g{"b":[1]})"},
               {"Sure.\n<tool_call>{\"name\":\"f\"}</tool_call>\n \n<tool_call>{\"name\":\"g\"}</tool_call>\n",
                "'Sure.\n' f{} g{}"},
               {"<think>hm</think>\n\n<tool_call>{\"name\":\"f\"}</tool_call>", "(hm) f{}"},
               {R"(<tool_call>{"name":"f"}<tool_call>{"name":"g"})", "f{} g{}"},
               {R"(<tool_call>{"name":"f","arguments":{"a":"<tool_call>{"}}</tool_call>)", R"(f{"a":"<tool_call>{"})"},
               {"a < b, <tool> and </tool_call>", "'a < b, <tool> and </tool_call>'"}});
}

TEST(json_forms, hermes_calls_that_cannot_be_read_are_content) {
  expect_none_of(kBadCalls, ToolForm::kHermes, "<tool_call>", "</tool_call>");
  expect_unread(ToolForm::kHermes,
                {{R"(<tool_call>{"name":"f"} and</tool_call>)", R"('<tool_call>{"name":"f"} and')"},
                 {R"(<tool_call>{"name": }</tool_call><tool_call>{"name":"g"}</tool_call>)",
                  R"('<tool_call>{"name": }' g{})"},
                 {R"(<tool_call>{"name":"f","arguments":{"a":"</tool_call>)",
                  R"('<tool_call>{"name":"f","arguments":{"a":"</tool_call>')"},
                 {R"(<tool_call>{"a":}<tool_call>{"name":"g"}</tool_call>)",
                  R"('<tool_call>{"a":}<tool_call>{"name":"g"}')"}});
}

TEST(json_forms, llama_calls_are_the_whole_answer) {
  expect_read(ToolForm::kLlama,
              {{R"({"name": "f", "parameters": {"a": 1}})", R"(f{"a":1})"},
               {R"(  {"name": "f", "parameters": {}}  )", "f{}"},
               {R"(<|python_tag|>{"name": "f", "parameters": {"x": "}"}})", R"(f{"x":"}"})"},
               {R"(<|python_tag|>{"name": "f"}; {"name": "g"})", "f{} g{}"},
               {R"({"name": "f", "arguments": {"a": "<|python_tag|>"}})", R"(f{"a":"<|python_tag|>"})"},
               {R"(No {"name": "f"})", R"('No {"name": "f"}')"},
               {"<think>hm</think>\n{\"name\": \"f\"}", "(hm) f{}"},
               {R"({"name": "f", "parameters": {"a": {"b": [1, {"c": null}]}}})", R"(f{"a":{"b":[1,{"c":null}]}})"},
               {R"({"type": "function", "name": "g", "parameters": {"k": "\u00e9"}})", "g{\"k\":\"\u00e9\"}"},
               {"\n\n{\"name\": \"f\"}\n", "f{}"}});
}

TEST(json_forms, llama_answers_that_only_begin_like_calls_are_content) {
  expect_none_of({kBadCalls.begin(), kBadCalls.end()}, ToolForm::kLlama, "<|python_tag|>", "");
  expect_unread(ToolForm::kLlama,
                {{R"({"name": "Bob", "age": 7})", R"('{"name": "Bob", "age": 7}')"},
                 {R"({"a": 1})", R"('{"a": 1}')"},
                 {R"({"name": "f"} is a call)", R"('{"name": "f"} is a call')"},
                 {R"({"name": "f"}; no)", R"('{"name": "f"}; no')"},
                 {R"({"name": "f", "parameters": {"a": "x)", R"('{"name": "f", "parameters": {"a": "x')"},
                 {"{}", "'{}'"},
                 {"{", "'{'"}});
}

TEST(json_forms, mistral_calls_are_a_list) {
  expect_read(ToolForm::kMistral,
              {{R"([TOOL_CALLS][{"name":"f","arguments":{"a":1}}])", R"(f{"a":1})"},
               {R"([TOOL_CALLS] [{"name":"f","arguments":{}},{"name":"g","arguments":{}}])", "f{} g{}"},
               {R"([TOOL_CALLS][{"name":"f","arguments":{"a":"]"},"id":"abcdefghi"}])", R"(f{"a":"]"})"},
               {R"([TOOL_CALLS]{"name":"f"})", "f{}"},
               {R"(Well. [TOOL_CALLS][{"name":"f"}])", "'Well. ' f{}"},
               {R"([TOOL_CALLS][{"name":"f"}]</s>)", "f{} '</s>'"},
               {R"([TOOL_CALLS][{"name":"f","arguments":{"a":"[TOOL_CALLS][{"}}])", R"(f{"a":"[TOOL_CALLS][{"})"},
               {R"([TOOL_CALLS][{"name":"f"}][TOOL_CALLS][{"name":"g"}])", "f{} g{}"},
               {R"([TOOL_CALLS]f[ARGS]{"a":1})", R"(f{"a":1})"},
               {"[TOOL_CALL] [TOOL", "'[TOOL_CALL] [TOOL'"}});
}

TEST(json_forms, mistral_calls_that_cannot_be_read_are_content) {
  expect_none_of({kBadCalls.begin(), kBadCalls.end()}, ToolForm::kMistral, "[TOOL_CALLS]", "");
  expect_none_of({kBadCalls.begin(), kBadCalls.end() - 2}, ToolForm::kMistral, "[TOOL_CALLS][", "]");
  expect_unread(ToolForm::kMistral, {{"[TOOL_CALLS][]", "'[TOOL_CALLS][]'"}, {"[TOOL_CALLS]", "'[TOOL_CALLS]'"}});
}

TEST(json_forms, mistral_v11_names_stand_before_their_arguments) {
  expect_read(ToolForm::kMistralV11,
              {{R"([TOOL_CALLS]f[ARGS]{"a": 1})", R"(f{"a":1})"},
               {R"([TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[ARGS]{"b":"[ARGS]"})", R"(f{} g{"b":"[ARGS]"})"},
               {R"([TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a":1})", R"(f{"a":1})"},
               {R"([TOOL_CALLS]f{"a":1})", R"(f{"a":1})"},
               {R"(Let me see.[TOOL_CALLS]f[ARGS]{})", "'Let me see.' f{}"},
               {R"([THINK]hm[/THINK]Hi)", "(hm) 'Hi'"},
               {R"([THINK]hm[/THINK][TOOL_CALLS]f[ARGS]{})", "(hm) f{}"},
               {R"([TOOL_CALLS]f[ARGS] {"a": {"b": "}"}})", R"(f{"a":{"b":"}"}})"},
               {R"([TOOL_CALLS][{"name":"f"}])", "f{}"},
               {R"([TOOL_CALLS]my-tool.v2[ARGS]{"a":[1,2]})", R"(my-tool.v2{"a":[1,2]})"}});
}

TEST(json_forms, mistral_v11_calls_that_cannot_be_read_are_content) {
  expect_none_of(kBadArguments, ToolForm::kMistralV11, "[TOOL_CALLS]f[ARGS]", "");
  expect_unread(ToolForm::kMistralV11, {{"[TOOL_CALLS][ARGS]{}", "'[TOOL_CALLS][ARGS]{}'"},
                                        {"[TOOL_CALLS]f", "'[TOOL_CALLS]f'"},
                                        {"[TOOL_CALLS]f g[ARGS]{}", "'[TOOL_CALLS]f g[ARGS]{}'"},
                                        {"[TOOL_CALLS]f[AR", "'[TOOL_CALLS]f[AR'"}});
}

std::string deepseek(const std::string& words) {
  std::string mark = "<\xef\xbd\x9c";
  for (const char byte : words) byte == '_' ? mark += "\xe2\x96\x81" : mark += byte;
  return mark + "\xef\xbd\x9c>";
}

TEST(json_forms, deepseek_calls_have_a_separator) {
  const std::string calls = deepseek("tool_calls_begin"), end = deepseek("tool_calls_end");
  const std::string open = deepseek("tool_call_begin"), sep = deepseek("tool_sep"), close = deepseek("tool_call_end");
  const std::string old = open + "function" + sep + "f\n```json\n";
  expect_read(ToolForm::kDeepSeek,
              {{calls + old + "{\"a\": 1}\n```" + close + end, R"(f{"a":1})"},
               {calls + open + "f" + sep + "{\"a\": 1}" + close + end, R"(f{"a":1})"},
               {open + "f" + sep + "{}" + close + open + "g" + sep + "{}" + close, "f{} g{}"},
               {open + "f" + sep + "{}" + close + "\n" + open + "g" + sep + "{}" + close + end, "f{} g{}"},
               {"Well." + calls + open + "f" + sep + "{\"a\":\"" + close + "\"}" + close + end,
                "'Well.' f{\"a\":\"" + close + "\"}"},
               {calls + open + "f" + sep + "{}", "f{}"},
               {calls + open + "f" + sep + "{}" + end, "f{}"},
               {open + "f" + sep + "```json\n{\"a\":1}\n```" + close, R"(f{"a":1})"},
               {"<think>x</think>\n\n" + calls + old + "{}\n```" + close + end, "(x) f{}"},
               {open + "function" + sep + "f{\"a\":\"`\"}" + close, R"(f{"a":"`"})"},
               {"<\xef\xbd\x9ctool", "'<\xef\xbd\x9ctool'"}});
}

TEST(json_forms, deepseek_calls_that_cannot_be_read_are_content) {
  const std::string open = deepseek("tool_call_begin"), sep = deepseek("tool_sep"), close = deepseek("tool_call_end");
  expect_none_of(kBadArguments, ToolForm::kDeepSeek, open + "function" + sep + "f\n```json\n", close);
  expect_none_of({kBadArguments.begin() + 1, kBadArguments.end()}, ToolForm::kDeepSeek, open + "f" + sep + "```json",
                 close);
  expect_none_of({"f{}", "f", sep + "{}", "<" + sep + "{}"}, ToolForm::kDeepSeek, open, close);
}

TEST(json_forms, harmony_calls_are_messages_to_functions) {
  const std::string head = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>";
  expect_read(ToolForm::kGptOss,
              {{head + R"({"a":1}<|call|>)", R"(f{"a":1})"},
               {head + R"({"a":"<|call|>"}<|call|>)", R"(f{"a":"<|call|>"})"},
               {head + "{}", "f{}"},
               {head + " {} <|end|>", "f{}"},
               {"<|channel|>analysis<|message|>hm<|end|><|start|>assistant" + head + "{}<|call|>", "(hm) f{}"},
               {"<|start|>assistant to=functions.f<|channel|>commentary<|message|>{}<|call|>", "f{}"},
               {"<|channel|>final<|message|>Hi<|return|>", "'Hi'"},
               {"<|start|>assistant<|channel|>final<|message|>Hi<|end|>", "'Hi'"},
               {"<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + head + "{}<|call|>",
                "'I look.' f{}"},
               {"<|start|>assistant<|channel|>analysis<|message|>hm<|end|>", "(hm)"},
               {"<|start|>assistant Hi", "' Hi'"},
               {"<|channel|>fin", ""}});
}

TEST(json_forms, harmony_calls_that_cannot_be_read_are_content) {
  const std::string head = "<|channel|>commentary to=functions.f <|constrain|>json<|message|>";
  for (const std::string& body : kBadArguments) {
    const bool has_text = !body.empty();
    expect_unread(ToolForm::kGptOss, {{head + body + "<|end|>",
                                       parse_cut(head + body + "<|end|>", {.tools = ToolForm::kGptOss}, {}).line}});
    EXPECT_EQ(parse_cut(head + body, {.tools = ToolForm::kGptOss}, {}).line, has_text ? as_content(body) : "");
  }
}

TEST(json_forms, kimi_calls_have_counted_names) {
  const std::string open = "<|tool_call_begin|>", arg = "<|tool_call_argument_begin|>", close = "<|tool_call_end|>";
  const std::string calls = "<|tool_calls_section_begin|>", end = "<|tool_calls_section_end|>";
  expect_read(ToolForm::kKimi,
              {{calls + open + "functions.f:0" + arg + "{\"a\":1}" + close + end, R"(f{"a":1})"},
               {calls + open + "functions.f:0" + arg + "{}" + close + open + "functions.g:1" + arg + "{}" + close + end,
                "f{} g{}"},
               {open + "f" + arg + "{}" + close, "f{}"},
               {open + "f:12" + arg + "{}" + close, "f{}"},
               {open + "functions.a:b" + arg + "{}" + close, "a:b{}"},
               {"Hm." + calls + open + "functions.f:0" + arg + "{\"a\":\"" + close + "\"}" + close + end,
                "'Hm.' f{\"a\":\"" + close + "\"}"},
               {calls + open + "functions.f:0" + arg + "{}" + end, "f{}"},
               {calls + "\n" + open + " functions.f:0 " + arg + "\n{}\n" + close + "\n" + end, "f{}"},
               {"<think>x</think>" + calls + open + "functions.f:0" + arg + "{}" + close + end, "(x) f{}"},
               {calls + open + "functions.f:0" + arg + "{}", "f{}"}});
}

TEST(json_forms, kimi_calls_that_cannot_be_read_are_content) {
  const std::string open = "<|tool_call_begin|>", arg = "<|tool_call_argument_begin|>", close = "<|tool_call_end|>";
  expect_none_of(kBadArguments, ToolForm::kKimi, open + "functions.f:0" + arg, close);
  expect_none_of({"", "functions.f:0", "functions.f:0{}", ":0" + arg + "{}", "functions.:1" + arg + "{}"},
                 ToolForm::kKimi, open, close);
}

TEST(json_forms, granite_calls_are_a_list) {
  expect_read(ToolForm::kGranite,
              {{R"(<|tool_call|>[{"name":"f","arguments":{"a":1}}])", R"(f{"a":1})"},
               {R"(<tool_call>[{"name":"f","arguments":{}}])", "f{}"},
               {R"(<tool_call>[{"name":"f"}]</tool_call>)", "f{}"},
               {R"(<|tool_call|> [{"name":"f"}, {"name":"g"}])", "f{} g{}"},
               {R"(<|tool_call|>{"name":"f"})", "f{}"},
               {R"(<|tool_call|>[{"name":"f","arguments":{"a":"]<|tool_call|>"}}])", R"(f{"a":"]<|tool_call|>"})"},
               {R"(Hm. <|tool_call|>[{"name":"f"}] ok)", "'Hm. ' f{} 'ok'"},
               {R"(<|tool_call|>[{"name":"f"}]<|tool_call|>[{"name":"g"}])", "f{} g{}"},
               {"<think>x</think>\n<|tool_call|>[{\"name\":\"f\"}]", "(x) f{}"},
               {"<|tool_ca", "'<|tool_ca'"}});
}

TEST(json_forms, granite_calls_that_cannot_be_read_are_content) {
  expect_none_of(kBadCalls, ToolForm::kGranite, "<|tool_call|>", "");
  expect_none_of({kBadCalls.begin(), kBadCalls.end() - 2}, ToolForm::kGranite, "<|tool_call|>[", "]");
}

}  // namespace
}  // namespace candor::text
