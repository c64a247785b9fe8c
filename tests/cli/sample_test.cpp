// `candor sample`: the worked numbers of the source documents, as a reader would type them; and what cannot be typed.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace candor::testing {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

constexpr double kThreeDigits = 0.0005 + 1e-9;  // as the documents print them
const char* const kFive = "2.0,-1.5,0.3,4.2,-0.8";

Json sampled(Arguments more) {
  Arguments arguments = {"sample", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult result = run_candor(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out, nullptr, false);
}

void expect_probabilities(const Arguments& arguments, const std::vector<double>& expected) {
  const Json json = sampled(arguments);
  ASSERT_EQ(json.at("probabilities").size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(json["probabilities"][i].get<double>(), expected[i], kThreeDigits) << i << " of " << arguments[1];
}

Json stage(const Json& json, const std::string& name) {
  for (const Json& one : json.at("stages")) {
    if (one.at("name") == name) return one;
  }
  ADD_FAILURE() << "no stage " << name << " in " << json.dump();
  return {};
}

TEST(sample_command, gives_the_softmax_of_the_documents_at_three_temperatures) {
  expect_probabilities({"--logits", kFive}, {0.097, 0.003, 0.018, 0.876, 0.006});
  expect_probabilities({"--logits", kFive, "--temperature", "0.7"}, {0.041, 0.000, 0.004, 0.954, 0.001});
  expect_probabilities({"--logits", kFive, "--temperature", "2"}, {0.206, 0.036, 0.088, 0.619, 0.051});
  expect_probabilities({"--probabilities", "0.7,0.2,0.1", "--temperature", "0.5"}, {0.907, 0.074, 0.019});
  expect_probabilities({"--probabilities", "0.7,0.2,0.1", "--temperature", "2"}, {0.523, 0.279, 0.198});
}

TEST(sample_command, takes_the_best_where_nothing_is_drawn) {
  const Json json = sampled({"--logits", kFive, "--temperature", "0"});
  EXPECT_EQ(json["token"], 3);
  EXPECT_EQ(json["was_drawn"], false);
  EXPECT_TRUE(json["seed"].is_null());
  const RunResult page = run_candor({"sample", "--logits", kFive, "--temperature", "0"});
  EXPECT_NE(page.out.find("the best is taken: 3"), std::string::npos) << page.out;
  EXPECT_EQ(page.out.find("seed"), std::string::npos) << page.out;
}

TEST(sample_command, keeps_and_cuts_what_the_documents_say) {
  expect_probabilities({"--logits", kFive, "--top-k", "2"}, {0.100, 0, 0, 0.900, 0});
  const Json top_p = stage(sampled({"--logits", kFive, "--top-p", "0.9"}), "top_p");
  EXPECT_EQ(top_p["n_left"], 2);  // 0.876 is below 0.9, 0.973 reaches it
  EXPECT_EQ(top_p["n_cut"], 3);
  EXPECT_NEAR(top_p["cut_probability"].get<double>(), 1 - 0.973, 0.001);
  ASSERT_EQ(top_p["cut"].size(), 3u);
  EXPECT_EQ(top_p["cut"][0]["token"], 2);
  const char* const eleven = "8,2,2,1.5,0.5,0.3,-1,-2,-5,-8,-10";
  const Json top_k = stage(sampled({"--logits", eleven, "--top-k", "3"}), "top_k");
  ASSERT_EQ(top_k["n_left"], 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(top_k["best"][static_cast<size_t>(i)]["token"], i);
  EXPECT_EQ(stage(sampled({"--logits", eleven, "--top-p", "0.9"}), "top_p")["n_left"], 1);
}

TEST(sample_command, min_p_cuts_below_a_tenth_of_the_best) {
  const Json json = sampled({"--probabilities", "0.82,0.083,0.081,0.016", "--min-p", "0.1"});
  const Json min_p = stage(json, "min_p");  // 0.082
  EXPECT_EQ(min_p["n_left"], 2);
  EXPECT_EQ(min_p["cut"][0]["token"], 2);
}

TEST(sample_command, penalties_are_told_by_token) {
  const Json json = sampled({"--logits", "3,1", "--labels", "fox,dog", "--history", "fox,fox,fox,fox",
                             "--presence-penalty", "0.2", "--frequency-penalty", "0.1"});
  const Json changed = stage(json, "penalties").at("changed");
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(changed[0]["piece"], "fox");
  EXPECT_EQ(changed[0]["n_in_output"], 4);
  EXPECT_NEAR(changed[0]["before"].get<double>(), 3.0, 1e-6);
  EXPECT_NEAR(changed[0]["after"].get<double>(), 2.4, 1e-6);
  const Json repeated = stage(sampled({"--logits", "3,-1", "--history", "0,1", "--repeat-penalty", "2"}), "penalties");
  EXPECT_NEAR(repeated["changed"][0]["after"].get<double>(), 1.5, 1e-6);   // divided
  EXPECT_NEAR(repeated["changed"][1]["after"].get<double>(), -2.0, 1e-6);  // multiplied
}

TEST(sample_command, tempered_logits_are_quotients) {
  const Json tempered = stage(sampled({"--logits", "3,2,1,0.5,0.1", "--temperature", "0.5"}), "temperature");
  const double expected[] = {6, 4, 2, 1, 0.2};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(tempered["best"][i]["logit"].get<double>(), expected[i], 1e-5);
  for (const auto& [temperature, ratio] : {std::pair{"0.1", 10.0}, {"0.5", 2.0}, {"1", 1.0}, {"2", 0.5}}) {
    const Json json = sampled({"--logits", "3,2,1,0.5,0.1", "--temperature", temperature});
    const double p = json["probabilities"][0].get<double>(), q = json["probabilities"][1].get<double>();
    EXPECT_NEAR(std::log(p / q), ratio, 1e-4) << temperature;
  }
  for (const auto& [temperature, t] : {std::pair{"0.5", 0.5}, {"1", 1.0}, {"2", 2.0}}) {
    const Json json = sampled({"--logits", "8.7,6.2,5.9,4.3", "--temperature", temperature});
    const double p = json["probabilities"][0].get<double>(), q = json["probabilities"][2].get<double>();
    EXPECT_NEAR(std::log(p / q), (8.7 - 5.9) / t, 1e-4) << temperature;
  }
}

TEST(sample_command, draws_come_as_often_as_is_stated) {
  const Arguments arguments = {"--logits", kFive, "--temperature", "2",     "--xtc-probability", "0.5",
                               "--xtc-threshold", "0.15", "--draws", "20000", "--seed", "7"};
  const Json json = sampled(arguments);
  int64_t n = 0;
  for (size_t i = 0; i < 5; ++i) {
    const double p = json["probabilities"][i].get<double>();
    const double count = json["draws"]["counts"][i].get<double>();
    n += json["draws"]["counts"][i].get<int64_t>();
    EXPECT_NEAR(count, 20000 * p, 4 * std::sqrt(20000 * p * (1 - p)) + 1) << i;  // four deviations
  }
  EXPECT_EQ(n, 20000);
  EXPECT_EQ(json, sampled(arguments)) << "the same seed, the same draws";
}

TEST(sample_command, a_page_shows_each_stage_and_those_without_effect_in_a_line) {
  const RunResult page = run_candor({"sample", "--logits", kFive, "--labels", "cat,dog,eel,fox,gnu", "--top-k", "5",
                                     "--min-p", "0.000001", "--top-p", "0.9", "--draws", "100"});
  ASSERT_EQ(page.exit_code, 0) << page.err;
  for (const char* word : {"logits: 5 candidates", "fox", "top_k 5: changed nothing", "min_p 1e-06: changed nothing",
                           "top_p 0.9: 2 left, 3 cut with 0.027 of the probability", "cut", "0.900", "stated", "drawn"})
    EXPECT_NE(page.out.find(word), std::string::npos) << word << " not in:\n" << page.out;
}

class SampleInput : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("candor-sample-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return "@" + (folder_ / name).string();
  }
  static void expect_refused(Arguments more, const std::vector<std::string>& words) {
    more.insert(more.begin(), "sample");
    const RunResult result = run_candor(more);
    EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
    EXPECT_LT(result.err.size(), 400u) << result.err;
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << " not in: " << result.err;
  }
  std::filesystem::path folder_;
};

TEST_F(SampleInput, that_is_no_list_of_numbers_is_refused_with_its_place) {
  expect_refused({}, {"--logits", "--probabilities"});
  expect_refused({"--logits", "1,2", "--probabilities", "0.5"}, {"once"});
  expect_refused({"--logits", ""}, {"--logits", "no number"});
  expect_refused({"--logits", "1,,2"}, {"number 2"});
  expect_refused({"--logits", "1,2,"}, {"number 3"});
  expect_refused({"--logits", "1,nan"}, {"number 2", "nan"});
  expect_refused({"--logits", "1,inf"}, {"number 2", "inf"});
  expect_refused({"--logits", "1,1e60"}, {"number 2", "1e60"});
  expect_refused({"--logits", "1,fox"}, {"number 2", "fox"});
  expect_refused({"--logits", "-inf,-inf"}, {"leaves anything"});
  expect_refused({"--probabilities", "0,0"}, {"leaves anything"});
  expect_refused({"--probabilities", "0.5,-0.1"}, {"number 2", "-0.1", "0 to 1"});
  expect_refused({"--probabilities", "0.5,2"}, {"number 2", "0 to 1"});
}

TEST_F(SampleInput, names_tokens_that_are_there) {
  expect_refused({"--logits", "1,2", "--labels", "a"}, {"1 names for 2 numbers"});
  expect_refused({"--logits", "1,2", "--labels", "a,a"}, {"\"a\"", "twice"});
  expect_refused({"--logits", "1,2", "--labels", "a,"}, {"label 2 is empty"});
  expect_refused({"--logits", "1,2", "--history", "c"}, {"--history", "\"c\""});
  expect_refused({"--logits", "1,2", "--history", "2"}, {"--history", "\"2\"", "0 to 1"});
  expect_refused({"--logits", "1,2", "--logit-bias", "9=1"}, {"--logit-bias", "\"9\""});
}

TEST_F(SampleInput, has_bounds) {
  expect_refused({"--logits", "1,2", "--draws", "1e9"}, {"--draws", "1e9", "1000000"});
  expect_refused({"--logits", "1,2", "--draws", "1000000000"}, {"--draws", "1000000"});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "1\n";
  expect_refused({"--logits", file("many", many), "--draws", "1000000"}, {"too many", "300000"});
  std::string too_many;
  for (int i = 0; i <= 1'000'000; ++i) too_many += "1 ";
  expect_refused({"--logits", file("too_many", too_many)}, {"more than 1000000 numbers"});
}

TEST_F(SampleInput, comes_from_a_file_of_numbers) {
  const Json json = sampled({"--logits", file("five", "2.0 -1.5\n0.3,4.2\n-0.8\n"), "--labels",
                             file("names", "cat\ndog\r\neel\nfox, red\ngnu\n"), "--temperature", "0"});
  EXPECT_EQ(json["label"], "fox, red");
  expect_refused({"--logits", file("garbage", std::string("\x7f\x45LF\0\x01", 6))}, {"binary"});
  expect_refused({"--logits", file("words", "not a number")}, {"number 1", "not"});
  expect_refused({"--logits", file("latin", "1,2,\xE9")}, {"UTF-8"});
  expect_refused({"--logits", "@/nowhere/at/all"}, {"/nowhere/at/all", "No such file"});
  expect_refused({"--logits", "@" + folder_.string()}, {"is a folder"});
}

TEST(sample_command, says_what_has_no_effect) {
  const RunResult result = run_candor({"sample", "--logits", kFive, "--temperature", "0", "--top-k", "2",
                                       "--presence-penalty", "1", "--min-tokens", "3"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* note : {"--top-k has no effect", "--presence-penalty has no effect", "--min-tokens has no effect"})
    EXPECT_NE(result.err.find(note), std::string::npos) << note << " not in: " << result.err;
  EXPECT_NE(run_candor({"sample", "--probabilities", "0.5,0.2"}).err.find("sum to 0.7"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing
