// What steps take is measured once for a model, its file and the options, and held against the steps as they run.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "apps/bench/remembered_costs.h"
#include "cli/cache_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;
using apps::RememberedCosts;

class remembered_costs : public ::testing::Test {
 protected:
  static void write(const fs::path& path, const std::string& content) { std::ofstream(path) << content; }
  fs::path cache() const { return folder_.path() / "candor" / "costs.json"; }
  static StepCosts some() {
    StepCosts costs;
    costs.points = {{1, 0.5}, {16, 2.25}};
    costs.attend_ns = 1.5;
    return costs;
  }
  static void run(RememberedCosts& costs, double ratio) {
    StepReport report;
    report.expected_ms = 2;
    report.compute_ms = 2 * ratio;
    for (size_t i = 0; i < RememberedCosts::kSteps; ++i) costs.take(report);
  }

  static EngineOptions options_for(const fs::path& model) {
    EngineOptions options;
    options.model_path = model;
    return options;
  }

  CacheFolder folder_;
  EngineOptions options_ = options_for(folder_.file("model.gguf", "weights"));
};

TEST_F(remembered_costs, are_those_of_the_same_file_and_options) {
  EXPECT_FALSE(RememberedCosts(options_).recall());
  RememberedCosts(options_).keep(some());
  const auto known = RememberedCosts(options_).recall();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->points.size(), 2u);
  EXPECT_EQ(known->points[1].ms, 2.25);
  EXPECT_EQ(known->attend_ns, 1.5);
  EngineOptions others = options_;
  others.max_running = 3;
  EXPECT_FALSE(RememberedCosts(others).recall());
  others = options_;
  others.quantize = "q4_0";
  EXPECT_FALSE(RememberedCosts(others).recall());
  write(options_.model_path, "other weights");
  EXPECT_FALSE(RememberedCosts(options_).recall());
}

TEST_F(remembered_costs, that_are_damaged_are_none) {
  RememberedCosts(options_).keep(some());
  const RememberedCosts costs(options_);
  std::ifstream file(cache());
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  ASSERT_TRUE(costs.recall());
  for (size_t n = 0; n + 1 < whole.size(); ++n) {
    write(cache(), whole.substr(0, n));
    EXPECT_FALSE(costs.recall()) << n;
  }
  for (const char* falling : {"0.5", "2.25"}) {
    std::string broken = whole;
    broken.replace(broken.find(falling), std::string(falling).size(), *falling == '0' ? "9e9" : "0.1");
    write(cache(), broken);
    EXPECT_FALSE(costs.recall()) << falling;
  }
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// As the program wrote the file before versions: entries alone.
TEST_F(remembered_costs, of_an_earlier_program_are_read) {
  const RememberedCosts costs(options_);
  costs.keep(some());
  std::string text = content_of(cache());
  const std::string version = "\"version\": 1,";
  ASSERT_NE(text.find(version), std::string::npos);
  text.erase(text.find(version), version.size());
  write(cache(), text);
  EXPECT_TRUE(costs.recall());
  costs.keep(some());
  EXPECT_NE(content_of(cache()).find(version), std::string::npos);
}

TEST_F(remembered_costs, of_a_later_program_are_left_alone) {
  const RememberedCosts costs(options_);
  costs.keep(some());
  for (const char* version : {"2", "\"2b\"", "9223372036854775807", "1e99", "{}"}) {
    std::string text = content_of(cache());
    const size_t at = text.find("\"version\": ") + 11;
    text.replace(at, text.find_first_of(",\n", at) - at, version);
    write(cache(), text);
    EXPECT_FALSE(costs.recall()) << version;
    ::testing::internal::CaptureStderr();
    costs.keep(some());
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("costs.json: written by a later candor"), std::string::npos);
    EXPECT_EQ(content_of(cache()), text) << version;
    write(cache(), text.replace(text.find(version), std::string(version).size(), "1"));
    EXPECT_TRUE(costs.recall());
  }
}

TEST_F(remembered_costs, that_the_steps_do_not_bear_out_are_forgotten) {
  for (const double ratio : {0.6, 1.0, 1.8}) {
    RememberedCosts costs(options_);
    costs.keep(some());
    run(costs, ratio);
    EXPECT_FALSE(costs.forget_if_off()) << ratio;
    EXPECT_TRUE(costs.recall()) << ratio;
  }
  for (const double ratio : {0.4, 2.5}) {
    RememberedCosts costs(options_);
    costs.keep(some());
    run(costs, ratio);
    EXPECT_TRUE(costs.forget_if_off()) << ratio;
    EXPECT_FALSE(costs.forget_if_off()) << ratio;
    EXPECT_FALSE(costs.recall()) << ratio;
  }
}

TEST_F(remembered_costs, are_kept_for_the_newest_models_only) {
  for (size_t i = 0; i < RememberedCosts::kMostKept + 2; ++i) {
    options_.max_running = static_cast<int32_t>(i + 1);
    RememberedCosts(options_).keep(some());
  }
  options_.max_running = 2;
  EXPECT_FALSE(RememberedCosts(options_).recall());
  options_.max_running = 3;
  EXPECT_TRUE(RememberedCosts(options_).recall());
}

}  // namespace
}  // namespace candor::testing
