// Random schemas, each written by random logits under its constraint, and every finished output checked by an
// independent validator: Python's jsonschema. Skips where that is not installed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "byte_tokenizer.h"
#include "constrain/grammar_constraint.h"
#include "platform/float_mode.h"
#include "sample/sampler.h"
#include "support/patient_helpers.h"
#include "support/temp_folder.h"

namespace candor::constrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemas = 500;
constexpr int kMaxTokens = 1500;

constexpr const char* kValidator = R"(
import json, sys
import jsonschema
def pairs(items):
    keys = [k for k, _ in items]
    assert len(keys) == len(set(keys)), "a key appears twice"
    return dict(items)
bad = 0
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    try:
        value = json.loads(case["output"], object_pairs_hook=pairs)
        jsonschema.Draft202012Validator(case["schema"]).validate(value)
    except Exception as e:
        bad += 1
        print("INVALID", str(e)[:300].replace("\n", " "), line[:500])
sys.exit(1 if bad else 0)
)";

class SchemaMaker {
 public:
  explicit SchemaMaker(uint32_t seed) : random_(seed) {}

  Json make(int depth) {
    switch (below(depth > 0 ? 12 : 8)) {
      case 0:
        return {{"type", "integer"}, {"minimum", below(100) - 50}, {"maximum", 50 + below(1000)}};
      case 1:
        return {{"type", "number"}};
      case 2:
        return {{"type", "string"}, {"minLength", below(4)}, {"maxLength", 4 + below(8)}};
      case 3:
        return {{"type", "string"}, {"pattern", "^[a-z]{2,5}-[0-9]+$"}, {"maxLength", 12}};
      case 4:
        return {{"enum", {"red", 7, nullptr, true, "a \"b\""}}};
      case 5:
        return {{"type", "boolean"}};
      case 6:
        return {{"const", below(2) == 0 ? Json("fixed") : Json{{"k", 1}}}};
      case 7:
        return {{"type", {"null", "integer"}}, {"exclusiveMinimum", below(10)}};
      case 8:
        return {{"anyOf", {make(depth - 1), make(depth - 1)}}};
      case 9:
        return {{"type", "array"}, {"items", make(depth - 1)}, {"minItems", below(3)}, {"maxItems", 2 + below(3)}};
      default:
        return object(depth);
    }
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Json object(int depth) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    const int n = 1 + below(4);
    for (int i = 0; i < n; ++i) {
      const std::string name = "p" + std::to_string(i);
      schema["properties"][name] = make(depth - 1);
      if (below(2) == 0) schema["required"].push_back(name);
    }
    schema["additionalProperties"] = below(2) == 0 ? Json(false) : Json{{"type", "null"}};
    return schema;
  }

  std::mt19937 random_;
};

// Bytes by random logits, with some liking for what ends strings and lists, so that most outputs end.
class RandomWriter {
 public:
  std::optional<std::string> write(Constraint& constraint, const ByteTokenizer& tokenizer, uint64_t seed) {
    const platform::ScopedFloatMode float_mode;
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::normal_distribution<float> normal(0.0f, 2.0f);
    std::vector<float> logits(static_cast<size_t>(tokenizer.n_vocab()));
    TokenMask mask(tokenizer.n_vocab());
    const sample::ChainParams chain;
    std::string text;
    for (uint64_t position = 0; position < kMaxTokens; ++position) {
      for (float& logit : logits) logit = normal(random);
      for (const char c : std::string_view("\"]},:")) logits[static_cast<unsigned char>(c)] += 5.0f;
      logits[ByteTokenizer::kEnd] += 8.0f;
      if (!constraint.mask(mask)) return std::nullopt;
      sample::Pick pick;
      if (!sampler_.pick({.logits = logits, .chain = chain, .mask = &mask, .key = {seed, 0, position}}, pick))
        return {};
      if (pick.token == ByteTokenizer::kEnd) return text;
      if (!constraint.accept(pick.token)) return std::nullopt;
      text += static_cast<char>(pick.token);
    }
    return std::nullopt;
  }

 private:
  sample::Sampler sampler_{*kernels::runnable_tables().back()};
};

// A Python that has jsonschema, "" where there is none.
std::string validating_python() {
  for (const std::string& python : {std::string(CANDOR_CLIENTS_PYTHON), std::string("python3")}) {
    if (std::system((python + " -c 'import jsonschema' 2>/dev/null").c_str()) == 0) return python;
  }
  return {};
}

TEST(json_schema, what_random_logits_write_is_valid_by_an_independent_validator) {
  const std::string python = validating_python();
  if (python.empty()) GTEST_SKIP() << "no Python with jsonschema (scripts/setup_clients.sh installs one)";
  const ByteTokenizer tokenizer;
  sandbox::HelperPool helpers(testing::patient_helpers());
  const auto compiler = GrammarCompiler::create(tokenizer, helpers);
  ASSERT_TRUE(compiler.has_value());
  const testing::TempFolder folder;
  std::ofstream cases(folder.path() / "cases.jsonl");
  std::ofstream(folder.path() / "check.py") << kValidator;
  SchemaMaker maker(11);
  RandomWriter writer;
  int n_finished = 0;
  for (int i = 0; i < kSchemas; ++i) {
    const Json schema = maker.make(3);
    auto constraint = (*compiler)->compile(GrammarKind::kJsonSchema, schema.dump());
    ASSERT_TRUE(constraint.has_value()) << schema << ": " << constraint.error().message;
    const auto text = writer.write(**constraint, tokenizer, static_cast<uint64_t>(i));
    if (!text) continue;
    ++n_finished;
    cases << Json{{"schema", schema}, {"output", *text}}.dump() << "\n";
  }
  cases.close();
  const std::string command =
      python + " " + (folder.path() / "check.py").string() + " " + (folder.path() / "cases.jsonl").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_GE(n_finished, kSchemas * 9 / 10);
  RecordProperty("finished", n_finished);
}

}  // namespace
}  // namespace candor::constrain
