#pragma once
// What cases of config.json share: the names of the cases, the prompt, and the logits that are looked at.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/all/make_backend.h"
#include "changed_golden.h"
#include "model/hub/hub_folder.h"
#include "support/model_runner.h"
#include "support/shared_data.h"

namespace candor::testing {

inline constexpr int32_t kCaseVocab = 288;
inline constexpr int32_t kCaseTokens = 48;
inline constexpr size_t kCasePositions[] = {5, 23, 47};
inline constexpr size_t kCaseStep = 16;

// Of the files in tests/families/`folder`.
inline std::vector<std::string> case_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(project_file("tests/families/" + folder))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

// The logits that the library's are kept of; the reason where the folder is refused.
struct Outcome {
  std::string refusal;
  std::vector<float> logits;
};

inline Outcome outcome_of(const std::filesystem::path& folder) {
  const auto file = model::open_model(folder);
  if (!file) return {file.error().message, {}};
  if (std::string refusal = refusal_of(**file); !refusal.empty()) return {refusal, {}};
  auto backend = backend::make_backend("reference", {.n_threads = 1});
  const auto runner = ModelRunner::make(**file, std::move(*backend), {.max_rows = kCaseTokens, .n_blocks = 4, .n_ctx = kCaseTokens});
  if (runner == nullptr) return {"the model does not run", {}};
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < kCaseTokens; ++i) tokens.push_back((37 * i * i + 11 * i + 5) % kCaseVocab);
  const std::vector<Logits> rows = runner->run(tokens, kCaseTokens);
  Outcome outcome;
  for (const size_t position : kCasePositions) {
    for (size_t i = 0; i < kCaseVocab; i += kCaseStep) outcome.logits.push_back(rows[position][i]);
  }
  return outcome;
}

inline std::vector<float> logits_in(const nlohmann::json& rows) {
  std::vector<float> logits;
  for (const nlohmann::json& row : rows) {
    for (const nlohmann::json& value : row) logits.push_back(value.get<float>());
  }
  return logits;
}

// numerics.md: 1e-4 of the largest logit.
inline float excess(const std::vector<float>& expected, const std::vector<float>& seen) {
  float largest = 0.0f, difference = 0.0f;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(expected[i] - seen[i]));
  }
  return difference / (1e-4f * largest);
}

}  // namespace candor::testing
