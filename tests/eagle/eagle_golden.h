#pragma once
// The goldens of make_goldens.py: heads of a family's golden, and what they draft.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/ids.h"
#include "formats/model_file.h"
#include "model/hub/hub_folder.h"
#include "support/shared_data.h"

namespace candor::testing {

inline constexpr int32_t kDraftVocab = 64;

inline std::filesystem::path eagle_folder(const std::string& name) {
  return project_file("tests/eagle/goldens/" + name);
}
inline std::filesystem::path eagle_target() {
  return goldens() / "llama";
}

struct EagleGolden {
  std::vector<TokenId> read{};               // the prompt
  std::vector<TokenId> drafts{};             // behind it
  std::vector<std::vector<float>> logits{};  // [drafts][kDraftVocab]
};

inline EagleGolden eagle_golden(const std::string& name) {
  EagleGolden golden;
  std::ifstream text(eagle_folder(name) / "expected.json");
  const auto json = nlohmann::json::parse(text);
  golden.read = json.at("read").get<std::vector<TokenId>>();
  golden.drafts = json.at("drafts").get<std::vector<TokenId>>();
  golden.logits.assign(golden.drafts.size(), std::vector<float>(kDraftVocab));
  std::ifstream numbers(eagle_folder(name) / "expected.f32", std::ios::binary);
  for (auto& row : golden.logits) numbers.read(reinterpret_cast<char*>(row.data()), kDraftVocab * sizeof(float));
  EXPECT_TRUE(numbers.good()) << name;
  return golden;
}

inline std::unique_ptr<formats::ModelFile> open_file(const std::filesystem::path& path) {
  auto file = model::open_model(path);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  return file ? std::move(*file) : nullptr;
}

}  // namespace candor::testing
