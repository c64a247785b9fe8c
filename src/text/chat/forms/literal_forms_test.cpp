// Forms that write values in a notation of their own: Gemma 4 and LFM2; and what holds of every form.
#include <fstream>
#include <iterator>

#include "support/shared_data.h"
#include "text/chat/call_json.h"
#include "text/chat/forms/forms_test_support.h"

namespace candor::text {
namespace {

std::string gemma(const std::string& inner) {
  return "<|tool_call>call:" + inner + "<tool_call|>";
}

TEST(literal_forms, gemma_strings_have_marks_of_their_own) {
  expect_read(ToolForm::kGemma,
              {{gemma("f{}"), "f{}"},
               {gemma("set{city:<|\"|>Bern<|\"|>,days:3}"), R"(set{"city":"Bern","days":3})"},
               {gemma("f{a:true,b:null,c:1.5}"), R"(f{"a":true,"b":null,"c":1.5})"},
               {gemma("f{a:{b:[<|\"|>x<|\"|>,<|\"|>y<|\"|>]}}"), R"(f{"a":{"b":["x","y"]}})"},
               {gemma("f{a:<|\"|>\"}<tool_call|>\\<|\"|>}"), R"(f{"a":"\"}<tool_call|>\\"})"},
               {gemma("f{a:<|\"|>line\nbreak<|\"|>}"), R"(f{"a":"line\nbreak"})"},
               {gemma("f{<|\"|>a<|\"|>:1,\"b\":\"c\"}"), R"(f{"a":1,"b":"c"})"},
               {gemma("f{}") + gemma("g{}"), "f{} g{}"},
               {"<|channel>thought\nhm<channel|>Hi<turn|>", "(hm) 'Hi'"},
               {"<|channel>thought\nhm<channel|>" + gemma("f{}") + "<|tool_response>", "(hm) f{}"},
               {"<|tool_call>call:f{}", "f{}"},
               {"<|tool", "'<|tool'"}});
}

TEST(literal_forms, gemma_calls_that_cannot_be_read_are_content) {
  for (const std::string body :
       {"", "f", "call:", "call:f", "call:{}", "call:f{", "call:f{a:1", "call:f{a:<|\"|>x", "call:f{a:}", "call:f{a}",
        "call:f{a:1]}", "call:f{a:b}", "call:f{} and", "call:f[]", "call:f{a:1,}"}) {
    expect_unread(ToolForm::kGemma, {{"<|tool_call>" + body, as_content("<|tool_call>" + body)}});
  }
  expect_unread(ToolForm::kGemma, {{gemma("f{a:}") + gemma("g{}"), "'<|tool_call>call:f{a:}' g{}"}});
}

std::string lfm(const std::string& inner) {
  return "<|tool_call_start|>" + inner + "<|tool_call_end|>";
}

TEST(literal_forms, lfm_calls_are_pythons) {
  expect_read(ToolForm::kLfm,
              {{lfm("[f()]"), "f{}"},
               {lfm("[set(city=\"Bern\", days=3)]"), R"(set{"city":"Bern","days":3})"},
               {lfm("[f(a='x'), g(b=True, c=None, d=-1.5)]"), R"(f{"a":"x"} g{"b":true,"c":null,"d":-1.5})"},
               {lfm("[f(a=['x', \"y\"], b={'k': (1, 2)})]"), R"(f{"a":["x","y"],"b":{"k":[1,2]}})"},
               {lfm("[f(a=\")]<|tool_call_end|>\")]"), R"(f{"a":")]<|tool_call_end|>"})"},
               {lfm("[f(a='it\\'s', b=\"\\u00e9\\n\\x41\")]"), "f{\"a\":\"it's\",\"b\":\"\u00e9\\nA\"}"},
               {lfm("[f(a='''two\nlines''',)]"), R"(f{"a":"two\nlines"})"},
               {lfm("[{\"name\": \"f\", \"arguments\": {\"a\": true}}]"), R"(f{"a":true})"},
               {lfm("[f(a={\"b\": 1})]") + "Let me see.", R"(f{"a":{"b":1}} 'Let me see.')"},
               {"<think>hm</think>" + lfm("[ns.f(a='\"')]"), R"((hm) ns.f{"a":"\""})"},
               {lfm("[f(a=(), b=[1,], c='\\U0001F600')]"), "f{\"a\":[],\"b\":[1],\"c\":\"\U0001F600\"}"},
               {"f(a=1)", "'f(a=1)'"}});
}

TEST(literal_forms, lfm_calls_that_cannot_be_read_are_content) {
  for (const std::string body :
       {"", "f()", "[]", "[f]", "[f(]", "[f(1)]", "[f(a=)]", "[f(a=b)]", "[f(a=1]", "[f(a='x)]", "[f(a=g())]",
        "[f(a=1) and]", "[f(a='x'y')]", "[f(a:1)]", "[f(a=1,,b=2)]", "[f(a='\\x4')]"}) {
    expect_unread(ToolForm::kLfm, {{"<|tool_call_start|>" + body, as_content("<|tool_call_start|>" + body)}});
  }
  expect_unread(ToolForm::kLfm, {{lfm("[f(1)]") + lfm("[g()]"), "'<|tool_call_start|>[f(1)]' g{}"}});
}

TEST(forms, every_form_has_a_name_and_is_found_by_its_marks) {
  for (const FormRow* row : form_rows()) {
    EXPECT_FALSE(row->signs.empty()) << row->name;
    for (const std::string_view sign : row->signs) EXPECT_EQ(tool_form_of(sign), row->form) << sign;
    EXPECT_EQ(to_string(row->form), row->name);
    for (const FormMark& mark : row->marks) EXPECT_TRUE(mark.text[0] == '<' || mark.text[0] == '[') << mark.text;
  }
  EXPECT_EQ(to_string(ToolForm::kNone), "none");
  EXPECT_EQ(tool_form_of("You are helpful."), ToolForm::kNone);
  EXPECT_EQ(tool_form_of("[TOOL_CALLS]f[ARGS]{}"), ToolForm::kMistralV11);
  EXPECT_EQ(tool_form_of("<tool_call>f\n<arg_key>a</arg_key>"), ToolForm::kGlm);
  EXPECT_EQ(tool_form_of("<tool_call>\n<function=f>"), ToolForm::kQwenCoder);
}

TEST(forms, published_templates_show_their_forms) {
  const std::filesystem::path folder = testing::shared_data() / "chat_templates";
  CANDOR_REQUIRE_DATA(folder);
  for (const auto& [name, form] : std::vector<std::pair<std::string, std::string_view>>{
           {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes"},
           {"Qwen-Qwen3-0.6B", "hermes"},
           {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek"},
           {"google-gemma-2-2b-it", "none"},
           {"ibm-granite-granite-3.3-2B-Instruct", "granite3"},
           {"meta-llama-Llama-3.2-3B-Instruct", "llama3.1"},
           {"mistralai-Mistral-Nemo-Instruct-2407", "mistral"},
           {"openai-gpt-oss-120b", "harmony"}}) {
    std::ifstream file(folder / (name + ".jinja"), std::ios::binary);
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    ASSERT_FALSE(source.empty()) << name;
    EXPECT_EQ(to_string(tool_form_of(source)), form) << name;
  }
}

TEST(forms, a_request_without_tools_never_makes_calls) {
  for (const FormRow* row : form_rows()) {
    for (const std::string& text :
         {std::string("<tool_call>{\"name\":\"f\"}</tool_call>"), std::string("{\"name\":\"f\"}"),
          std::string("<|channel|>commentary to=functions.f<|message|>{}<|call|>"), gemma("f{}"),
          std::string("[TOOL_CALLS]f[ARGS]{}"), lfm("[f()]")}) {
      const OutputForm form = OutputForm{.tools = row->form, .has_reasoning = true}.without_calls();
      OutputParser parser(form);
      std::vector<OutputPiece> pieces = parser.push(text);
      for (OutputPiece& piece : parser.finish()) pieces.push_back(std::move(piece));
      for (const OutputPiece& piece : pieces) EXPECT_NE(piece.kind, OutputPiece::Kind::kCall) << row->name << text;
      EXPECT_EQ(parser.n_unread(), 0);
    }
  }
}

TEST(forms, nesting_beyond_the_limit_is_content_in_every_notation) {
  const std::string deep(2 * kMaxCallDepth, '['), flat = deep + std::string(2 * kMaxCallDepth, ']');
  for (const auto& [form, text] : std::vector<std::pair<ToolForm, std::string>>{
           {ToolForm::kGemma, "<|tool_call>call:f{a:" + flat + "}"},
           {ToolForm::kLfm, "<|tool_call_start|>[f(a=" + flat + ")]"},
           {ToolForm::kKimi, "<|tool_call_begin|>f<|tool_call_argument_begin|>{\"a\":" + flat + "}"},
           {ToolForm::kMistralV11, "[TOOL_CALLS]f[ARGS]{\"a\":" + flat + "}"}}) {
    EXPECT_EQ(parse_cut(text, {.tools = form}, {}).line, as_content(text));
  }
}

// Each takes minutes where a call is looked at anew for each push, value or mark.
TEST(forms, long_calls_are_looked_at_once) {
  const auto fed = [](ToolForm form, const std::string& text) {
    std::vector<size_t> every;
    for (size_t at = 1; at < text.size(); ++at) every.push_back(at);
    return parse_cut(text, {.tools = form}, every).line.size();
  };
  std::string parameters = "<tool_call><function=f>", ends = "<tool_call><function=f><parameter=a>";
  std::string calls = "<|tool_call>", blanks = ends;
  for (int i = 0; i < 50'000; ++i) {
    parameters += "<parameter=" + std::to_string(i) + ">x</parameter>";
    ends += "</parameter>\n</param";
    calls += "call:f{\"<tool_call|><|tool_call>";
    blanks += "</parameter>   x";
  }
  EXPECT_GT(fed(ToolForm::kQwenCoder, parameters + "</function>"), 500'000u);
  EXPECT_GT(fed(ToolForm::kQwenCoder, ends), 500'000u);
  EXPECT_GT(fed(ToolForm::kQwenCoder, blanks), 500'000u);
  EXPECT_GT(fed(ToolForm::kGemma, calls), 500'000u);
  EXPECT_GT(fed(ToolForm::kQwenCoder, ends + std::string(1'000'000, ' ')), 500'000u);
}

}  // namespace
}  // namespace candor::text
