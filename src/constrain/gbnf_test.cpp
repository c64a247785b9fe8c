#include "constrain/gbnf.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/small_stack.h"

namespace candor::constrain {
namespace {

std::string times(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

// The deepest brackets outside of literals and classes.
int depth_of(const std::string& lark) {
  int depth = 0;
  int deepest = 0;
  char inside = 0;
  for (const char c : lark) {
    if (inside != 0) {
      if (c == inside) inside = 0;
    } else if (c == '"' || c == '/') {
      inside = c;
    } else {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

// What becomes of it on a small stack: the Lark, or the error's words behind "!".
std::string rewritten(const std::string& grammar) {
  std::string found = "!";
  testing::run_on_small_stack([&] {
    const auto lark = lark_of_gbnf(grammar);
    found = lark ? *lark : "!" + lark.error().message;
  });
  return found;
}

TEST(gbnf, groups_and_repetitions_share_one_limit_on_depth) {
  const std::string groups = "root ::= " + times("(", 255) + "\"a\"" + times(")" + times("*", 250), 255);
  EXPECT_NE(rewritten(groups).find("deeper than 256"), std::string::npos);
  EXPECT_NE(rewritten("root ::= \"a\"" + times("*", 60000)).find("deeper than 256"), std::string::npos);
  EXPECT_NE(rewritten("root ::= \"a\"" + times("{2}", 300)).find("deeper than 256"), std::string::npos);
  EXPECT_NE(rewritten("root ::= " + times("(\"a\" | ", 200) + "root" + times(")+", 200)).find("deeper than 256"),
            std::string::npos);
}

TEST(gbnf, what_is_within_the_limit_is_rewritten_on_a_small_stack) {
  for (const std::string& grammar :
       {"root ::= " + times("(", 250) + "\"a\"" + times(")", 250), "root ::= \"a\"" + times("*", 250),
        "root ::= " + times("(\"a\" ", 250) + "root" + times(")", 250),
        "root ::= " + times("(\"a\" | ", 120) + "root" + times(")+", 120),
        "root ::= \"a\"" + times(" | \"a\"", 100'000), std::string("root ::= (((.{100}){100}){100})"),
        "root ::= " + times("(\"" + std::string(100, 'a') + "\"", 120) + " root" + times("){2,3}", 120)}) {
    const std::string lark = rewritten(grammar);
    EXPECT_TRUE(lark.starts_with("start: ")) << grammar.substr(0, 60) << ": " << lark.substr(0, 200);
    EXPECT_LE(depth_of(lark), 256) << grammar.substr(0, 60);
  }
}

TEST(gbnf, thousands_of_rules_in_a_chain_or_a_circle_are_rewritten_on_a_small_stack) {
  for (const char* last : {"\"a\"", "root"}) {
    std::string chain = "root ::= r0\n";
    for (int i = 0; i < 7900; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " | \"x\"\n";
    EXPECT_TRUE(rewritten(chain + "r7900 ::= " + last).starts_with("start: "));
  }
}

TEST(gbnf, a_grammar_that_grows_when_it_is_rewritten_is_refused) {
  EXPECT_NE(rewritten("root ::= [" + std::string(500'000, 'a') + "]").find("bytes as the grammar compiler"),
            std::string::npos);
}

}  // namespace
}  // namespace candor::constrain
