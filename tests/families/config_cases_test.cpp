// Every golden's config.json with keys left out or spelled otherwise, against what the `transformers` library computes
// or refuses (make_config_cases.py): never other numbers in silence.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "changed_golden.h"
#include "config_case.h"
#include "formats/json_text.h"
#include "golden_logits.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json changed_config(const json& config, const json& change) {
  json changed = config;
  json& settings = changed.contains("text_config") ? changed["text_config"] : changed;
  for (const json& key : change.value("drop", json::array())) settings.erase(key.get<std::string>());
  settings.update(change.value("set", json::object()));
  return changed;
}

Outcome changed_outcome(const std::string& name, const json& config) {
  const TempFolder folder;
  for (const auto& entry : fs::directory_iterator(golden_folder(name))) {
    if (entry.path().extension() == ".safetensors") {
      fs::create_symlink(entry.path(), folder.path() / entry.path().filename());
    }
  }
  std::ofstream(folder.path() / "config.json") << config.dump();
  return outcome_of(folder.path());
}

std::vector<float> kept_logits(const std::string& name) {
  const std::vector<Logits> rows = golden_logits(golden_folder(name) / "expected.f32");
  std::vector<float> logits;
  for (const size_t position : kCasePositions) {
    const Logits& row = rows[position / 3];
    for (size_t i = 0; i < kCaseVocab; i += kCaseStep) logits.push_back(row[i]);
  }
  return logits;
}

std::vector<float> expected_logits(const std::string& name, const json& expect) {
  return expect == "same" ? kept_logits(name) : logits_in(expect);
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
    const Outcome outcome = changed_outcome(name, changed_config(config, one));
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

INSTANTIATE_TEST_SUITE_P(families, ConfigCases, ::testing::ValuesIn(case_names("config_cases")),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace candor::testing
