// Every golden's config.json with keys left out or spelled otherwise, against what the `transformers` library computes
// or refuses (make_config_cases.py): never other numbers in silence.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/all/make_backend.h"
#include "changed_golden.h"
#include "formats/json_text.h"
#include "model/hub/hub_folder.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int32_t kVocab = 288;
constexpr int32_t kTokens = 48;
constexpr size_t kPositions[] = {5, 23, 47};
constexpr size_t kStep = 16;

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(project_file("tests/families/config_cases"))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

json changed_config(const json& config, const json& change) {
  json changed = config;
  json& settings = changed.contains("text_config") ? changed["text_config"] : changed;
  for (const json& key : change.value("drop", json::array())) settings.erase(key.get<std::string>());
  settings.update(change.value("set", json::object()));
  return changed;
}

// The logits that the library's are kept of; the reason where the folder is refused.
struct Outcome {
  std::string refusal;
  std::vector<float> logits;
};

Outcome outcome_of(const std::string& name, const json& config) {
  const TempFolder folder;
  for (const auto& entry : fs::directory_iterator(golden_folder(name))) {
    if (entry.path().extension() == ".safetensors") {
      fs::create_symlink(entry.path(), folder.path() / entry.path().filename());
    }
  }
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto file = model::open_model(folder.path());
  if (!file) return {file.error().message, {}};
  if (std::string refusal = refusal_of(**file); !refusal.empty()) return {refusal, {}};
  auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto runner = ModelRunner::make(**file, std::move(*backend), {.max_rows = kTokens, .n_blocks = 4});
  if (runner == nullptr) return {"the model does not run", {}};
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < kTokens; ++i) tokens.push_back((37 * i * i + 11 * i + 5) % kVocab);
  const std::vector<Logits> rows = runner->run(tokens, kTokens);
  Outcome outcome;
  for (const size_t position : kPositions) {
    for (size_t i = 0; i < kVocab; i += kStep) outcome.logits.push_back(rows[position][i]);
  }
  return outcome;
}

std::vector<float> golden_logits(const std::string& name) {
  std::ifstream stream(golden_folder(name) / "expected.f32", std::ios::binary);
  std::vector<float> all(static_cast<size_t>(kTokens) * kVocab);
  stream.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(float)));
  EXPECT_TRUE(stream.good()) << name;
  std::vector<float> logits;
  for (const size_t position : kPositions) {
    for (size_t i = 0; i < kVocab; i += kStep) logits.push_back(all[position * kVocab + i]);
  }
  return logits;
}

std::vector<float> expected_logits(const std::string& name, const json& expect) {
  if (expect == "same") return golden_logits(name);
  std::vector<float> logits;
  for (const json& row : expect) {
    for (const json& value : row) logits.push_back(value.get<float>());
  }
  return logits;
}

// numerics.md: 1e-4 of the largest logit.
float excess(const std::vector<float>& expected, const std::vector<float>& seen) {
  float largest = 0.0f, difference = 0.0f;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(expected[i] - seen[i]));
  }
  return difference / (1e-4f * largest);
}

// What the library computes and Candor does not, which it says.
bool is_not_computed(const std::string& title) {
  constexpr const char* kTitles[] = {
      "deepseek_v3, without num_experts_per_tok",         // more experts than the chosen groups have
      "falcon_h1_norm, without mamba_norm_before_gate",   // a norm before the gate
      "gpt_neox, without num_attention_heads",            // heads of one dimension
  };
  return std::ranges::find(kTitles, title) != std::end(kTitles);
}

class ConfigCases : public ::testing::TestWithParam<std::string> {};

TEST_P(ConfigCases, are_computed_as_by_transformers_or_refused) {
  const std::string& name = GetParam();
  const json cases =
      formats::read_json_file(project_file("tests/families/config_cases/" + name + ".json"), 1 << 22).value();
  const json config = formats::read_json_file(golden_folder(name) / "config.json", 1 << 20).value();
  for (const json& one : cases) {
    const std::string title = name + ", " + one["name"].get<std::string>();
    const Outcome outcome = outcome_of(name, changed_config(config, one));
    const bool may_refuse = one.contains("contradicts") || one.contains("leaves") || is_not_computed(title);
    EXPECT_EQ(outcome.refusal.find('\n'), std::string::npos) << title << ": " << outcome.refusal;
    if (one["expect"] == "refused") {
      EXPECT_NE(outcome.refusal, "") << title << ": computed, which the library refuses";
    } else if (!outcome.refusal.empty()) {
      EXPECT_TRUE(may_refuse) << title << ": refused: " << outcome.refusal;
    } else {
      EXPECT_LE(excess(expected_logits(name, one["expect"]), outcome.logits), 1.0f) << title << ": other numbers";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(families, ConfigCases, ::testing::ValuesIn(names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace candor::testing
