// Forms that write each argument by itself: Qwen3-Coder, GLM, MiniMax; their values are typed by the tool's schema.
#include "text/chat/forms/forms_test_support.h"

namespace candor::text {
namespace {

std::string qwen(const std::string& inner) {
  return "<tool_call>\n" + inner + "\n</tool_call>";
}

std::string qwen_value(const std::string& key, const std::string& value) {
  return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
}

std::string qwen_set(const std::string& arguments) {
  return qwen("<function=set>\n" + arguments + "</function>");
}

TEST(tagged_forms, qwen_coder_calls_are_tags) {
  expect_read(ToolForm::kQwenCoder,
              {{qwen("<function=f>\n</function>"), "f{}"},
               {qwen_set(qwen_value("city", "Bern") + qwen_value("days", "3")), R"(set{"city":"Bern","days":3})"},
               {"I look.\n" + qwen("<function=f></function>") + "\n" + qwen("<function=g></function>"),
                "'I look.\n' f{} g{}"},
               {qwen("<function=f><parameter=a>1</parameter></function>"), R"(f{"a":1})"},
               {qwen_set(qwen_value("city", "a\n\nb")), R"(set{"city":"a\n\nb"})"},
               {qwen_set(qwen_value("city", "</parameter>.</tool_call> <function=g>")),
                R"(set{"city":"</parameter>.</tool_call> <function=g>"})"},
               {"<function=f>\n</function>\n</tool_call>", "f{}"},
               {"<function=f></function>", "f{}"},
               {qwen("<function=f>" + qwen_value("a", "x")), R"(f{"a":"x"})"},
               {"<think>hm</think>\n\n" + qwen("<function=f></function>"), "(hm) f{}"},
               {qwen_set(qwen_value("city", "1") + qwen_value("city", "2")), R"(set{"city":"2"})"},
               {"<function a=1> is <tool", "'<function a=1> is <tool'"}});
}

TEST(tagged_forms, values_have_the_types_of_the_tools_schema) {
  const auto one = [](const std::string& key, const std::string& value, const std::string& json) {
    return FormCase{qwen_set(qwen_value(key, value)), "set{\"" + key + "\":" + json + "}"};
  };
  expect_read(ToolForm::kQwenCoder, {one("city", "7", R"("7")"),
                                     one("city", "true", R"("true")"),
                                     one("city", R"({"a":1})", R"("{\"a\":1}")"),
                                     one("city", "", R"("")"),
                                     one("city", "\"quoted\"", R"("\"quoted\"")"),
                                     one("days", "7", "7"),
                                     one("days", " 7 ", "7"),
                                     one("days", "seven", R"("seven")"),
                                     one("days", "123456789012345678901234567890", "123456789012345678901234567890"),
                                     one("ratio", "1.50", "1.50"),
                                     one("celsius", "true", "true"),
                                     one("celsius", "True", "true"),
                                     one("celsius", "False", "false"),
                                     one("celsius", "yes", R"("yes")"),
                                     one("tags", "[1, \"a\"]", R"([1,"a"])"),
                                     one("tags", "['a', None]", R"(["a",null])"),
                                     one("tags", "a, b", R"("a, b")"),
                                     one("extra", "{\"k\": [1, 2]}", R"({"k":[1,2]})"),
                                     one("extra", "{'k': True}", R"({"k":true})"),
                                     one("note", "null", "null"),
                                     one("note", "7", R"("7")"),
                                     one("note", "None", "null"),
                                     one("level", "2", "2"),
                                     one("unknown", "2", "2"),
                                     one("unknown", "two", R"("two")"),
                                     one("unknown", "{\"a\": \"b\"}", R"({"a":"b"})"),
                                     one("unknown", "1e999", R"("1e999")")});
}

TEST(tagged_forms, qwen_coder_calls_that_cannot_be_read_are_content) {
  const std::vector<std::string> bodies = {"",
                                           "f",
                                           "<function=>",
                                           "<function=f",
                                           "<function=f>",
                                           "<function=f>\ntext</function>",
                                           "<function=f><parameter=a>1",
                                           "<function=f><parameter=a>1</parameter>",
                                           "<function=f><parameter a=1></function>",
                                           "<function=f><parameter=>1</parameter></function>",
                                           "<function=f><parameter=a>1</parameter> and </function>",
                                           "<function f></function>"};
  for (const std::string& body : bodies) {
    expect_unread(ToolForm::kQwenCoder, {{"<tool_call>" + body, as_content("<tool_call>" + body)}});
  }
  expect_unread(ToolForm::kQwenCoder,
                {{"<tool_call>{\"name\": \"f\"}</tool_call>" + qwen("<function=g></function>"),
                  "'<tool_call>{\"name\": \"f\"}' g{}"}});
}

std::string glm(const std::string& name, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string text = "<tool_call>" + name + "\n";
  for (const auto& [key, value] : values)
    text += "<arg_key>" + key + "</arg_key>\n<arg_value>" + value + "</arg_value>\n";
  return text + "</tool_call>";
}

TEST(tagged_forms, glm_calls_are_pairs_of_tags) {
  expect_read(
      ToolForm::kGlm,
      {{glm("f", {}), "f{}"},
       {glm("set", {{"city", "Bern"}, {"days", "3"}}), R"(set{"city":"Bern","days":3})"},
       {"<tool_call>f</tool_call>", "f{}"},
       {"<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call>", R"(f{"a":"x"})"},
       {"\n" + glm("f", {}) + "\n" + glm("g", {}), "f{} g{}"},
       {glm("set", {{"city", "</arg_value> and </tool_call>"}}), R"(set{"city":"</arg_value> and </tool_call>"})"},
       {glm("set", {{"city", "a\nb"}, {"extra", "{\"k\":1}"}}), R"(set{"city":"a\nb","extra":{"k":1}})"},
       {"\n<think>hm</think>\n" + glm("f", {}), "(hm) f{}"},
       {"Hi " + glm("f", {{"a", "<tool_call>"}}) + " there", "'Hi ' f{\"a\":\"<tool_call>\"} ' there'"},
       {glm("set", {{"city", ""}}), R"(set{"city":""})"},
       {"<tool_cal", "'<tool_cal'"}});
}

TEST(tagged_forms, glm_calls_that_cannot_be_read_are_content) {
  const std::vector<std::string> bodies = {"",
                                           "\n",
                                           "f",
                                           "f\n",
                                           "{\"name\": \"f\"}\n",
                                           "f\n<arg_key>a",
                                           "f\n<arg_key>a</arg_key>",
                                           "f\n<arg_key>a</arg_key>1",
                                           "f\n<arg_key>a</arg_key><arg_value>1",
                                           "f\n<arg_key>a</arg_key><arg_value>1</arg_value>",
                                           "f\n<arg_key></arg_key><arg_value>1</arg_value>",
                                           "f\n<arg_value>1</arg_value>"};
  for (const std::string& body : bodies) {
    expect_unread(ToolForm::kGlm, {{"<tool_call>" + body, as_content("<tool_call>" + body)}});
  }
  expect_unread(ToolForm::kGlm, {{"<tool_call>f\nx</tool_call>" + glm("g", {}), "'<tool_call>f\nx' g{}"}});
}

std::string minimax(const std::string& inner) {
  return "<minimax:tool_call>\n" + inner + "\n</minimax:tool_call>";
}

std::string invoke(const std::string& name, const std::string& inner) {
  return "<invoke name=\"" + name + "\">\n" + inner + "</invoke>\n";
}

std::string minimax_value(const std::string& key, const std::string& value) {
  return "<parameter name=\"" + key + "\">" + value + "</parameter>\n";
}

TEST(tagged_forms, minimax_calls_are_invocations) {
  expect_read(ToolForm::kMiniMax,
              {{minimax(invoke("f", "")), "f{}"},
               {minimax(invoke("set", minimax_value("city", "Bern") + minimax_value("days", "3"))),
                R"(set{"city":"Bern","days":3})"},
               {minimax(invoke("f", "") + invoke("g", "")), "f{} g{}"},
               {"Hm.\n" + minimax(invoke("f", "")) + "\nDone", "'Hm.\n' f{} '\nDone'"},
               {minimax(invoke("set", minimax_value("city", "</parameter></minimax:tool_call>"))),
                R"(set{"city":"</parameter></minimax:tool_call>"})"},
               {minimax(invoke("set", minimax_value("city", "a\n<invoke name=\"g\">\nb"))),
                R"(set{"city":"a\n<invoke name=\"g\">\nb"})"},
               {"<think>hm</think>\n\n" + minimax(invoke("f", "")), "(hm) f{}"},
               {"<minimax:tool_call><invoke name=\"f\"></invoke></minimax:tool_call>", "f{}"},
               {"<minimax:tool_call>" + invoke("f", ""), "f{}"},
               {minimax(invoke("set", minimax_value("tags", "[\"a\"]"))), R"(set{"tags":["a"]})"},
               {"<minimax:", "'<minimax:'"}});
}

TEST(tagged_forms, minimax_calls_that_cannot_be_read_are_content) {
  const std::vector<std::string> bodies = {"",
                                           "\n",
                                           "f",
                                           "<invoke>",
                                           "<invoke name=\"f",
                                           "<invoke name=\"\"></invoke>",
                                           "<invoke name=\"f\">",
                                           "<invoke name=\"f\">text</invoke>",
                                           "<invoke name=\"f\"><parameter name=\"a\">1",
                                           "<invoke name=\"f\"><parameter name=\"a\">1</parameter>",
                                           "<invoke name=\"f\"><parameter name=\"\">1</parameter></invoke>",
                                           "<invoke name=\"f\"></invoke> and",
                                           "{\"name\": \"f\"}"};
  for (const std::string& body : bodies) {
    expect_unread(ToolForm::kMiniMax, {{"<minimax:tool_call>" + body, as_content("<minimax:tool_call>" + body)}});
  }
}

}  // namespace
}  // namespace candor::text
