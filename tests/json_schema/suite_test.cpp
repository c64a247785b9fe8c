// The JSON Schema Test Suite, draft 2020-12, over a vocabulary of single bytes: what compiles must refuse every
// instance that the suite calls invalid; what does not compile must say why. Figures are printed.

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "byte_tokenizer.h"
#include "constrain/grammar_constraint.h"
#include "support/patient_helpers.h"
#include "support/shared_data.h"

namespace candor::constrain {
namespace {

using Json = nlohmann::ordered_json;  // instances keep the order of their keys

class JsonSchemaSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    auto compiler = GrammarCompiler::create(tokenizer_, helpers_);
    ASSERT_TRUE(compiler.has_value());
    compiler_ = std::move(*compiler);
  }
  bool accepts(const Constraint& constraint, const std::string& text) const {
    auto fork = constraint.fork();
    if (!fork) return false;
    const auto encoded = tokenizer_.encode(text, {});
    for (const TokenId token : *encoded) {
      if (!(*fork)->accept(token)) return false;
    }
    return (*fork)->may_end();
  }

  ByteTokenizer tokenizer_;
  sandbox::HelperPool helpers_{testing::patient_helpers()};
  std::unique_ptr<GrammarCompiler> compiler_;
};

struct Figures {
  int n_schemas = 0, n_compiled = 0, n_valid = 0, n_valid_accepted = 0, n_invalid = 0;
};

TEST_F(JsonSchemaSuite, what_compiles_accepts_nothing_invalid_and_what_does_not_says_why) {
  const auto folder = testing::shared_data() / "json_schema" / "draft2020-12";
  CANDOR_REQUIRE_DATA(folder);
  Figures figures;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    for (const Json& group : Json::parse(file)) {
      ++figures.n_schemas;
      const auto constraint = compiler_->compile(GrammarKind::kJsonSchema, group["schema"].dump());
      if (!constraint) {
        EXPECT_FALSE(constraint.error().message.empty());
        EXPECT_NE(constraint.error().kind, ErrorKind::kInternal) << constraint.error().message;
        continue;
      }
      ++figures.n_compiled;
      for (const Json& test : group["tests"]) {
        const bool is_valid = test["valid"];
        const bool accepted = accepts(**constraint, test["data"].dump()) || accepts(**constraint, test["data"].dump(1));
        ++(is_valid ? figures.n_valid : figures.n_invalid);
        if (is_valid) figures.n_valid_accepted += accepted ? 1 : 0;
        EXPECT_TRUE(is_valid || !accepted)
            << entry.path().filename() << ": " << group["description"] << ": " << test["description"] << "\n  "
            << group["schema"] << "\n  " << test["data"];
      }
    }
  }
  std::cout << figures.n_compiled << " of " << figures.n_schemas << " schemas compile; of their instances "
            << figures.n_invalid << " invalid ones are refused, " << figures.n_valid_accepted << " of "
            << figures.n_valid << " valid ones can be written\n";
  EXPECT_GE(figures.n_compiled, 314);  // so many do; more is welcome
}

TEST_F(JsonSchemaSuite, no_property_is_ever_written_twice) {
  for (const char* schema : {R"({"type": "object", "properties": {"a": {}, "b": {}}})", R"({"type": "object"})", "{}",
                             R"({"type": "object", "patternProperties": {"^[a-z]$": {}}})",
                             R"({"type": "object", "properties": {"a": {}}, "additionalProperties": false})"}) {
    const auto constraint = compiler_->compile(GrammarKind::kJsonSchema, schema);
    ASSERT_TRUE(constraint.has_value()) << schema;
    EXPECT_TRUE(accepts(**constraint, R"({"a": 1})")) << schema;
    EXPECT_FALSE(accepts(**constraint, R"({"a": 1, "a": 2})")) << schema;
    EXPECT_FALSE(accepts(**constraint, R"({"a": 1, "\u0061": 2})")) << schema;
    EXPECT_FALSE(accepts(**constraint, R"({"a": {"x": {"y": 1, "y": 2}}})")) << schema;
  }
}

}  // namespace
}  // namespace candor::constrain
