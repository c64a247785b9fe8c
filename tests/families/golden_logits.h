#pragma once
// The logits of goldens: what the library computed, what we compute, and how far apart they are.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "backend/all/make_backend.h"
#include "support/model_runner.h"

namespace candor::testing {

inline constexpr int32_t kGoldenTokens = 48;
inline constexpr int32_t kGoldenVocab = 288;

// As make_goldens.py has it.
inline std::vector<TokenId> golden_prompt() {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < kGoldenTokens; ++i) tokens.push_back((37 * i * i + 11 * i + 5) % kGoldenVocab);
  return tokens;
}

// The rows that goldens keep: of every third position, as golden_store.py has it.
inline std::vector<Logits> kept_rows(const std::vector<Logits>& all) {
  std::vector<Logits> rows;
  for (size_t i = 2; i < all.size(); i += 3) rows.push_back(all[i]);
  return rows;
}

// Of a golden's file: "expected.f32" and its like.
inline std::vector<Logits> golden_logits(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::vector<Logits> rows(kGoldenTokens / 3, Logits(kGoldenVocab));
  for (Logits& row : rows) stream.read(reinterpret_cast<char*>(row.data()), kGoldenVocab * sizeof(float));
  EXPECT_TRUE(stream.good()) << path;
  return rows;
}

// Of the prompt; none where the model does not load.
inline std::vector<Logits> run_golden_prompt(const formats::ModelFile& file, const char* backend = "cpu") {
  auto made = backend::make_backend(backend, {.n_threads = 2});
  EXPECT_TRUE(made) << made.error().message;
  const auto runner = ModelRunner::make(file, std::move(*made), {.max_rows = kGoldenTokens, .n_blocks = 4});
  EXPECT_NE(runner, nullptr);
  return runner == nullptr ? std::vector<Logits>{} : runner->run(golden_prompt(), kGoldenTokens);
}

inline float largest_logit(const std::vector<Logits>& rows) {
  float largest = 0.0f;
  for (const Logits& row : rows) {
    for (const float logit : row) largest = std::max(largest, std::fabs(logit));
  }
  return largest;
}

// Of the first n_rows.
inline float largest_difference(const std::vector<Logits>& a, const std::vector<Logits>& b, size_t n_rows) {
  float largest = 0.0f;
  for (size_t row = 0; row < n_rows; ++row) {
    for (size_t i = 0; i < a[row].size(); ++i) largest = std::max(largest, std::fabs(a[row][i] - b[row][i]));
  }
  return largest;
}

// numerics.md: 1e-4 of the largest logit, at the first n_positions.
inline void expect_golden_logits(const formats::ModelFile& file, const std::filesystem::path& path,
                                 int32_t n_positions = kGoldenTokens) {
  const std::vector<Logits> expected = golden_logits(path);
  const std::vector<Logits> seen = kept_rows(run_golden_prompt(file, "reference"));
  ASSERT_EQ(seen.size(), expected.size());
  const float largest = largest_logit(expected);
  EXPECT_GT(largest, 0.1f);
  EXPECT_LE(largest_difference(expected, seen, static_cast<size_t>(n_positions / 3)), 1e-4f * largest) << path;
}

// Of all logits together, relative to the golden's.
inline double relative_error(const std::vector<Logits>& all, const std::filesystem::path& path) {
  const std::vector<Logits> expected = golden_logits(path);
  const std::vector<Logits> seen = kept_rows(all);
  EXPECT_EQ(seen.size(), expected.size());
  double error = 0.0;
  double size = 0.0;
  for (size_t row = 0; row < std::min(seen.size(), expected.size()); ++row) {
    for (size_t i = 0; i < expected[row].size(); ++i) {
      error += std::pow(static_cast<double>(seen[row][i] - expected[row][i]), 2);
      size += std::pow(static_cast<double>(expected[row][i]), 2);
    }
  }
  return std::sqrt(error / size);
}

}  // namespace candor::testing
