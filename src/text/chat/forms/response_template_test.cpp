#include "text/chat/forms/response_template.h"

#include "text/chat/forms/forms_test_support.h"

namespace candor::text {
namespace {

// A field named tool_calls beside reasoning in <think>.
std::string with_calls(const std::string& calls) {
  return R"({"start_anchor": "<|im_start|>assistant\n", "defaults": {"role": "assistant"}, "fields": {
    "thinking": {"open": "<think>", "close": "</think>"}, "content": {"close": "<|im_end|>"}, "tool_calls": )" +
         calls + "}}";
}

OutputForm form_of(const std::string& json) {
  auto own = ResponseTemplate::parse(json);
  EXPECT_TRUE(own) << own.error().message;
  return {.tools = ToolForm::kOwn, .own = own ? std::move(*own) : nullptr, .types = weather_types()};
}

void expect_own(const std::string& json, const std::vector<FormCase>& read, const std::vector<FormCase>& unread) {
  const OutputForm form = form_of(json);
  if (form.own == nullptr) return;
  for (const FormCase& one : read) expect_form(one, form, false);
  for (const FormCase& one : unread) expect_form(one, form, true);
}

const char* const kJsonCalls = R"({"open": "<tool_call>", "close": "</tool_call>", "repeats": true, "content": "json",
  "transform": {"type": "function", "function": "{content}"}})";
const char* const kTagCalls = R"({"open_pattern": "<tool_call>\\s*<function=(?P<name>\\w+)>", "close": "</tool_call>",
  "repeats": true, "content": "xml-inline", "content_args": {
    "tag_pattern": "<parameter=(?P<key>\\w+)>\\s*(?P<value>.*?)\\s*</parameter>",
    "value_parser": {"name": "json", "args": {"allow_non_json": true}}},
  "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}})";

TEST(response_template, json_calls_end_where_their_json_does) {
  expect_own(with_calls(kJsonCalls),
             {{R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)", R"(f{"a":1})"},
              {R"(<tool_call>{"name":"f","arguments":{"a":"</tool_call>"}}</tool_call>)", R"(f{"a":"</tool_call>"})"},
              {"<think>hm</think>\n\nHi<|im_end|>", "(hm) '\n\nHi'"},
              {"<think>hm</think>\n<tool_call>{\"name\":\"f\"}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>",
               "(hm) f{} g{}"},
              {R"(<tool_call>{"name":"f"})", "f{}"}},
             {{R"(<tool_call>{"name": }</tool_call>!)", R"('<tool_call>{"name": }!')"},
              {R"(<tool_call>{"name": "f", "argu)", R"('<tool_call>{"name": "f", "argu')"},
              {R"(<tool_call>[1]</tool_call>)", "'<tool_call>[1]'"},
              {R"(<tool_call>{"name":"f"} x</tool_call>)", R"('<tool_call>{"name":"f"} x')"},
              {"<tool_call></tool_call>", "'<tool_call>'"}});
}

TEST(response_template, tags_are_typed_by_the_tools_schema) {
  expect_own(with_calls(kTagCalls),
             {{"<tool_call>\n<function=set>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>3</parameter>\n"
               "</function>\n</tool_call>",
               R"(set{"city":"Bern","days":3})"},
              {"<tool_call><function=f></function></tool_call>ok", "f{} 'ok'"},
              {"<tool_call><function=set><parameter=city></tool_call></parameter></function></tool_call>",
               R"(set{"city":"</tool_call>"})"},
              {"<tool_call><function=set><parameter=city>7</parameter></tool_call>", R"(set{"city":"7"})"}},
             {{"<tool_call><function=f", "'<tool_call><function=f'"},
              {"<tool_call><function=f><parameter=a>1", "'<tool_call><function=f><parameter=a>1'"},
              {"<tool_call><function=>x</tool_call>", "'<tool_call><function=>x'"},
              {"<tool_call>f</tool_call><tool_call><function=g></tool_call>", "'<tool_call>f' g{}"}});
}

TEST(response_template, names_may_stand_in_the_opening) {
  const std::string harmony = R"({"start_anchor": "<|start|>assistant", "fields": {
    "thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
    "content": {"open": "<|channel|>final<|message|>", "close": "<|end|>"},
    "tool_calls": {"open_pattern": "<\\|channel\\|>commentary to=functions\\.(?P<name>\\w+).*?<\\|message\\|>",
      "close": "<|call|>", "repeats": true, "content": "json",
      "transform": {"function": {"name": "{name}", "arguments": "{content}"}}}}})";
  expect_own(harmony,
             {{"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
               "<|constrain|>json<|message|>{\"a\":\"<|call|>\"}<|call|>",
               R"((hm) f{"a":"<|call|>"})"},
              {"<|channel|>final<|message|>Hi<|end|>", "'Hi'"}},
             {{"<|channel|>commentary to=functions.f<|message|>[1]<|call|>",
               "'<|channel|>commentary to=functions.f<|message|>[1]'"}});
  const std::string gemma =
      with_calls(R"x({"open_pattern": "<\\|tool_call>call:(?P<name>\\w+)", "close": "<tool_call|>",
    "content": "json", "content_args": {"unquoted_keys": true, "string_delims": [["<|\"|>", "<|\"|>"]]},
    "transform": {"function": {"name": "{name}", "arguments": "{content}"}}})x");
  expect_own(
      gemma,
      {{"<|tool_call>call:f{a:<|\"|>}<tool_call|><|\"|>,b:[1]}<tool_call|>", R"(f{"a":"}<tool_call|>","b":[1]})"}},
      {{"<|tool_call>call:f{a:}<tool_call|>", "'<|tool_call>call:f{a:}'"}});
}

TEST(response_template, lists_and_lines_become_calls) {
  expect_own(with_calls(R"({"open": "<|ACTION|>", "close": "<|END|>", "content": "json", "transform_each": true,
               "transform": {"function": {"name": "{tool_name}", "arguments": "{parameters}"}}})"),
             {{R"(<|ACTION|>[{"tool_name":"f","parameters":{"a":1}},{"tool_name":"g","parameters":{}}]<|END|>)",
               R"(f{"a":1} g{})"}},
             {{R"(<|ACTION|>[{"tool_name":"f"}]<|END|>)", R"('<|ACTION|>[{"tool_name":"f"}]')"},
              {R"(<|ACTION|>{"tool_name":"f","parameters":{}}<|END|>)",
               R"('<|ACTION|>{"tool_name":"f","parameters":{}}')"}});
  expect_own(with_calls(R"({"open_pattern": "\\[call (?P<name>[^\\]]+)\\]", "close": "[/call]", "content": "kv-lines",
               "transform": {"name": "{name}", "arguments": "{content}"}})"),
             {{"[call set]\ncity: Bern: old\n\ndays: 3\n[/call]", R"(set{"city":"Bern: old","days":3})"},
              {"[call f][/call]", "f{}"}},
             {{"[call f]\na: 1", "'[call f]\na: 1'"}});
  expect_own(with_calls(R"({"open": "]~b]", "close": "]~e]", "content": "json",
               "transform": {"name": "{content.tool}", "arguments": "{content.with.values}"}})"),
             {{R"(]~b]{"tool":"f","with":{"values":{"a":1}}}]~e])", R"(f{"a":1})"}},
             {{R"(]~b]{"tool":"f"}]~e])", R"(']~b]{"tool":"f"}')"}});
}

TEST(response_template, without_tools_it_still_takes_reasoning_apart) {
  const OutputForm form = form_of(with_calls(kJsonCalls)).without_calls();
  EXPECT_EQ(parse_cut("<think>a</think>b<tool_call>{\"name\":\"f\"}</tool_call><|im_end|>", form, {}).line,
            "(a) 'b<tool_call>{\"name\":\"f\"}</tool_call>'");
}

// As where a constraint makes the answer one JSON object.
TEST(response_template, another_form_may_be_asked_for) {
  OutputForm form = form_of(with_calls(kJsonCalls));
  form.tools = ToolForm::kLlama;
  EXPECT_EQ(parse_cut(R"({"name": "f", "parameters": {}})", form, {}).line, "f{}");
  form.tools = ToolForm::kNone;
  EXPECT_EQ(parse_cut(R"({"name": "f"})", form, {}).line, R"('{"name": "f"}')");
}

TEST(response_template, what_cannot_be_followed_is_refused_by_name) {
  const auto fault = [](const std::string& json) {
    const auto own = ResponseTemplate::parse(json);
    return own ? std::string("none") : own.error().message;
  };
  EXPECT_EQ(fault("{"), "response_template: is not valid JSON");
  EXPECT_EQ(fault("[]"), "response_template.fields: is no object");
  EXPECT_EQ(fault(R"({"fields": {"content": {}}})"), "response_template.fields: has no tool_calls");
  const auto calls_fault = [&](const std::string& calls) { return fault(with_calls(calls)); };
  EXPECT_EQ(calls_fault("7"), "response_template.fields.tool_calls: is no object");
  EXPECT_EQ(calls_fault("{}"), "response_template.fields.tool_calls.open: is missing");
  EXPECT_EQ(calls_fault(R"({"open": 7})"),
            "response_template.fields.tool_calls.open: is neither a text nor a list of texts");
  EXPECT_EQ(calls_fault(R"({"open": "a"})"),
            "response_template.fields.tool_calls.content: is \"text\", expected json, xml-inline or kv-lines");
  EXPECT_EQ(
      calls_fault(R"({"open_pattern": "(?=x)a", "content": "json"})"),
      "response_template.fields.tool_calls.open_pattern: the pattern \"(?=x)a\" cannot be followed from byte 1 on");
  EXPECT_EQ(calls_fault(R"({"open_pattern": "\\w+a", "content": "json"})"),
            "response_template.fields.tool_calls.open_pattern: \"\\w+a\" does not begin with a text of its own");
  EXPECT_EQ(calls_fault(R"({"open_pattern": "a.*?", "content": "json"})"),
            "response_template.fields.tool_calls.open_pattern: has a text of any length without one behind it");
  EXPECT_EQ(calls_fault(R"({"open": "a", "content": "json", "transform": {"name": "{x}"}})"),
            "response_template.fields.tool_calls.transform: gives no call a name and arguments");
  EXPECT_EQ(calls_fault(R"({"open": "a", "content": "xml-inline"})"),
            "response_template.fields.tool_calls.content_args.tag_pattern: \"\" does not begin with a text of its own");
  EXPECT_EQ(calls_fault(R"({"open": "a", "content": "json", "content_args": {"string_delims": [["a"]]}})"),
            "response_template.fields.tool_calls.content_args.string_delims: is no list of pairs of texts");
}

// Whatever bytes it holds: an error of one line, or a form that reads any text.
TEST(response_template, a_damaged_template_is_an_error_or_a_form) {
  for (const std::string& json : {with_calls(kJsonCalls), with_calls(kTagCalls)}) {
    for (size_t at = 0; at < json.size(); ++at) {
      std::string damaged = json;
      damaged[at] = damaged[at] == '\\' ? '(' : '\\';
      for (const std::string& one : {damaged, json.substr(0, at), json.substr(0, at) + json.substr(at + 1)}) {
        const auto own = ResponseTemplate::parse(one);
        if (!own) {
          EXPECT_EQ(own.error().message.find('\n'), std::string::npos);
          continue;
        }
        const OutputForm form{.tools = ToolForm::kOwn, .own = *own};
        EXPECT_NO_FATAL_FAILURE(
            parse_cut("<tool_call><function=f><parameter=a>1</parameter></tool_call>", form, {3, 9}));
      }
    }
  }
}

}  // namespace
}  // namespace candor::text
