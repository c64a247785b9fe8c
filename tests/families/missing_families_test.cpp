// Architectures that are known and not computed are refused in one line that says what is missing, from a folder
// without weights and from a GGUF file without tensors: nothing of them is read.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "families/changed_golden.h"
#include "model/families/families.h"
#include "model/families/missing.h"
#include "model/hub/hub_folder.h"
#include "support/memory_model_file.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

void expect_need(const std::string& refusal, const model::MissingFamily& row) {
  EXPECT_NE(refusal.find("'" + std::string(row.name) + "'"), std::string::npos) << refusal;
  EXPECT_TRUE(refusal.ends_with(row.need)) << refusal;
  EXPECT_EQ(refusal.find('\n'), std::string::npos) << refusal;
  EXPECT_LT(refusal.size(), 300u) << refusal;
}

std::string refusal_of_config(const nlohmann::json& config) {
  const TempFolder folder;
  std::ofstream(folder.path() / "config.json") << config;
  const auto file = model::open_model(folder.path());
  return file ? std::string() : file.error().message;
}

TEST(missing_families, a_gguf_file_is_refused_with_what_it_needs) {
  for (const model::MissingFamily& row : model::missing_families()) {
    MemoryModelFile file;
    file.set_string("general.architecture", std::string(row.name));
    expect_need(refusal_of(file), row);
  }
}

TEST(missing_families, a_folder_is_refused_with_what_it_needs) {
  for (const model::MissingFamily& row : model::missing_families()) {
    expect_need(refusal_of_config({{"model_type", row.name}}), row);
    expect_need(refusal_of_config({{"model_type", row.name}, {"text_config", {{"model_type", "gemma3n_text"}}}}), row);
  }
}

TEST(missing_families, none_of_them_is_supported) {
  for (const model::MissingFamily& row : model::missing_families()) {
    EXPECT_EQ(model::find_family(row.name), nullptr) << row.name;
    for (const model::Family& family : model::families()) {
      for (const model::HubForm& form : family.hub) EXPECT_NE(form.model_type, row.name);
    }
  }
}

}  // namespace
}  // namespace candor::testing
