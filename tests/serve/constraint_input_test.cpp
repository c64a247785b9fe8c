// Constraints as clients send them, right and wrong: what can be enforced is, the rest is refused, and nothing of it is
// dropped, slow, or kept.

#include "serve/client.h"

namespace candor::testing {
namespace {

class constraint_input : public ServerTest {
 protected:
  static ClientReply ask_with(const char* field, const Json& value) {
    Json body = user_says("hi", 3);
    body[field] = value;
    return post(port(), "/v1/chat/completions", body);
  }
  static ClientReply ask_schema(const Json& schema) {
    return ask_with("response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}});
  }
  static void expect_refused(const ClientReply& reply, const std::string& words, const std::string& what) {
    EXPECT_EQ(reply.status, 400) << what.substr(0, 120) << "\n -> " << reply.body.substr(0, 300);
    EXPECT_NE(reply.body.find(words), std::string::npos)
        << what.substr(0, 120) << "\n -> " << reply.body.substr(0, 300);
  }
};

TEST_F(constraint_input, grammars_that_mean_something_are_obeyed) {
  for (const char* grammar : {R"(root ::= root "a" | "a")", R"(root ::= ( [x]* )*)", R"(root ::= "yes" | "no")",
                              R"(root ::= [a-z]{1,3} "\u00e9")", "root ::= item+\nitem ::= [0-9]"}) {
    EXPECT_EQ(ask_with("grammar", grammar).status, 200) << grammar;
    EXPECT_EQ(ask_with("ebnf", grammar).status, 200) << grammar;
  }
}

TEST_F(constraint_input, grammars_that_mean_nothing_are_refused) {
  struct Case {
    std::string grammar, words;
  };
  for (const Case& one : {Case{R"(foo ::= "a")", "root"},
                          {"root ::= " + repeated("(", 50'000) + "\"a\"" + repeated(")", 50'000), "nested deeper"},
                          {R"(root ::= other)", "other"},
                          {R"(root ::= "a)", "line 1"},
                          {R"(root ::= [a-z)", "line 1"},
                          {R"(root ::= "\u20)", "line 1"},
                          {R"(root ::= [a-z]{1,2000000000})", "limit of 100000"},
                          {R"(root ::= "a" ) )", "line 1"},
                          {"", "root"}}) {
    expect_refused(ask_with("grammar", one.grammar), one.words, one.grammar);
  }
  expect_refused(
      ask(port(), "POST", "/v1/chat/completions",
          "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"grammar\":\"root ::= \\\"\xe2\x82\\\"\"}"),
      "UTF-8", "a grammar with half a code point");
}

TEST_F(constraint_input, sixty_thousand_chained_rules_are_answered_or_refused) {
  std::string grammar = "root ::= r0\n";
  for (int i = 0; i < 60'000; ++i) grammar += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  const ClientReply reply = ask_with("grammar", grammar + "r60000 ::= \"a\"\n");
  EXPECT_TRUE(reply.status == 200 || reply.status == 400) << reply.body.substr(0, 300);
}

TEST_F(constraint_input, patterns_are_linear_or_refused_with_their_place) {
  for (const char* pattern : {"(a+)+b", "[a-z]{1,20}", "(foo|bar)*", "[a-z]{1999,2000}"}) {
    EXPECT_EQ(ask_with("guided_regex", pattern).status, 200) << pattern;
  }
  for (const std::string& pattern : {std::string("["), std::string("foo**("), std::string("[a-z]{1,2000000000}"),
                                     std::string("a)"), repeated("(", 50'000)}) {
    expect_refused(ask_with("guided_regex", pattern), "guided_regex", pattern);
  }
}

TEST_F(constraint_input, schemas_are_enforced_or_refused_by_name) {
  const Json tree = Json::parse(
      R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}})");
  EXPECT_EQ(ask_schema(tree).status, 200);
  Json deep = {{"type", "string"}};
  for (int i = 0; i < 5000; ++i) deep = Json{{"type", "array"}, {"items", std::move(deep)}};
  const std::string text = deep.dump();
  expect_refused(ask_with("json_schema", text), "deeper", "a schema nested 5000 deep, as text");
  expect_refused(ask(port(), "POST", "/v1/chat/completions",
                     R"({"messages":[{"role":"user","content":"a"}],"guided_json":)" + text + "}"),
                 "nested deeper than 128", "a schema nested 5000 deep");
  for (const char* schema :
       {R"({"type":123})", R"({"type":"stsring"})", R"({"type":"array","minItems":1000000})",
        R"({"type":"string","minLength":2000000000})", R"({"type":"string","pattern":"foo**("})",
        R"({"type":"string","pattern":"["})", R"({"$ref":"http://127.0.0.1:1/x"})",
        R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})",
        R"({"type":"integer","minimum":5,"maximum":1})", R"({"enum":[]})", R"({"type":"object","required":5})"}) {
    expect_refused(ask_schema(Json::parse(schema)), "\"param\":\"response_format\"", schema);
  }
}

TEST_F(constraint_input, what_is_no_constraint_here_is_not_dropped) {
  for (const char* field : {"format", "stop_regex", "structural_tag", "guided_whitespace_pattern"}) {
    expect_refused(ask_with(field, "x"), field, field);
  }
  Json both = user_says("hi", 2);
  both["guided_regex"] = "a";
  both["grammar"] = "root ::= \"a\"";
  expect_refused(post(port(), "/v1/chat/completions", both), "beside another", "two constraints");
}

TEST_F(constraint_input, an_answer_cut_by_its_length_says_so) {
  const Json choice = ask_schema({{"type", "string"}, {"minLength", 50}}).json()["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
}

TEST_F(constraint_input, ever_other_schemas_leave_nothing_behind) {
  const auto ask_some = [](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      const std::string name = "field" + std::to_string(i);
      const Json schema = {{"type", "object"}, {"properties", {{name, {{"type", "string"}}}}}, {"required", {name}}};
      ASSERT_EQ(ask_schema(schema).status, 200);
    }
  };
  ask_some(0, 100);
  const int64_t before = trimmed_resident_bytes();
  ask_some(100, 400);
#ifndef CANDOR_SANITIZED  // freed memory stays in quarantine there
  constexpr int64_t kNoise = 16 << 20;
  EXPECT_LT(trimmed_resident_bytes() - before, kNoise);
#else
  EXPECT_GT(before, 0);
#endif
}

}  // namespace
}  // namespace candor::testing
