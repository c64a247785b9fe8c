// Settings of families, and config.json files as they are published, on tiny models whose weights are computed by
// formula, against what the `transformers` library computes with them or refuses (make_model_cases.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config_case.h"
#include "formats/json_text.h"
#include "made_folder.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

class ModelCases : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelCases, are_computed_as_by_transformers_or_refused) {
  const std::string path = "tests/families/model_cases/" + GetParam() + ".json";
  const nlohmann::json one = formats::read_json_file(project_file(path), 1 << 22).value();
  const TempFolder folder;
  write_made_folder(folder.path(), one["config"], one["tensors"]);
  const Outcome outcome = outcome_of(folder.path());
  EXPECT_EQ(outcome.refusal.find('\n'), std::string::npos) << outcome.refusal;
  if (one["expect"] == "refused") {
    EXPECT_NE(outcome.refusal, "") << "computed, which the library refuses";
    return;
  }
  ASSERT_EQ(outcome.refusal, "");
  EXPECT_LE(excess(logits_in(one["expect"]), outcome.logits), 1.0f) << "other numbers";
}

INSTANTIATE_TEST_SUITE_P(families, ModelCases, ::testing::ValuesIn(case_names("model_cases")),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace candor::testing
