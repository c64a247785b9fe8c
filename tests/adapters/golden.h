#pragma once
// The goldens of adapters (make_goldens.py): PEFT's folders, and the logits of the models of tests/families with them.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "candor/ids.h"
#include "support/model_runner.h"
#include "support/shared_data.h"

namespace candor::testing {

inline constexpr const char* kAdapters[] = {
    "llama_all", "llama_patterns", "llama_dora", "llama_saved", "llama_embedding", "qwen2_dora",
    "qwen3",     "gemma3",         "gpt2",       "phi3",        "gpt_neox",        "mixtral",
    "qwen3moe",  "gpt_oss",        "qwen3_next", "deepseek_v3", "nemotron_h"};

inline std::filesystem::path adapter_path(const std::string& name) {
  return project_file("tests/adapters/goldens/" + name);
}

inline std::filesystem::path model_path(const std::string& model) {
  return goldens() / model;
}

inline std::string base_of(const std::string& adapter) {
  std::string name;
  std::ifstream(adapter_path(adapter) / "base.txt") >> name;
  return name;
}

inline std::vector<TokenId> golden_prompt() {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < 16; ++i) tokens.push_back((37 * i * i + 11 * i + 5) % 288);
  return tokens;
}

inline std::vector<Logits> golden_logits(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::vector<Logits> rows(16, Logits(288));
  for (Logits& row : rows) stream.read(reinterpret_cast<char*>(row.data()), 288 * sizeof(float));
  EXPECT_TRUE(stream.good()) << path;
  return rows;
}

inline float largest_difference(const std::vector<Logits>& a, const std::vector<Logits>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0.0f;
  for (size_t row = 0; row < std::min(a.size(), b.size()); ++row) {
    for (size_t i = 0; i < a[row].size(); ++i) largest = std::max(largest, std::abs(a[row][i] - b[row][i]));
  }
  return largest;
}

}  // namespace candor::testing
