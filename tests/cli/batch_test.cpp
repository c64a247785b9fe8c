// candor batch: killed at any moment, it loses nothing and repeats nothing, and its answers are those of a whole run.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

// custom_id -> its choices.
std::map<std::string, std::string> choices_of(const std::filesystem::path& path) {
  std::map<std::string, std::string> choices;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;  // torn
    const auto body = json.at("response").at("body");
    EXPECT_TRUE(choices.emplace(json.at("custom_id"), body.value("choices", body).dump()).second) << line;
  }
  return choices;
}

TEST(batch_command, killed_again_and_again_it_answers_everything_once) {
  const TempFolder folder;
  const auto input = folder.path() / "in.jsonl";
  std::ofstream(input) << [] {
    std::string text;
    for (int i = 0; i < 120; ++i)
      text += R"({"messages":[{"role":"user","content":"Tell me of )" + std::to_string(i) +
              R"( foxes"}],"max_tokens":60})"
              "\n";
    return text;
  }();
  const auto whole = folder.path() / "whole.jsonl";
  const RunResult first = run_candor({"batch", input, whole, "--concurrency", "4"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("120 requests answered"), std::string::npos) << first.err;
  const auto expected = choices_of(whole);
  ASSERT_EQ(expected.size(), 120u);

  const auto parts = folder.path() / "parts.jsonl";
  int n_killed = 0;
  for (int i = 0; i < 200; ++i) {
    // Ever later, so that a slow build gets on as well.
    const std::string seconds = std::to_string(0.15 + 0.01 * (i * 7 % 40) + 0.05 * i);
    const RunResult part =
        run_candor({"-s", "KILL", seconds, CANDOR_PROGRAM, "batch", input, parts, "--ordered"}, {.program = "timeout"});
    if (part.exit_code == 0) break;
    ++n_killed;
  }
  EXPECT_GT(n_killed, 0);
  EXPECT_EQ(choices_of(parts), expected);
}

TEST(batch_command, an_interrupt_says_how_it_goes_on) {
  const TempFolder folder;
  const auto input = folder.path() / "in.jsonl";
  std::ofstream(input) << [] {
    std::string text;
    for (int i = 0; i < 3000; ++i)
      text += R"({"prompt":"Once upon a time","max_tokens":200,"ignore_eos":true})"
              "\n";
    return text;
  }();
  const RunResult result = run_candor({"batch", input, folder.path() / "out.jsonl"}, {.interrupt_at = "at once"});
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.err.find("the same command goes on"), std::string::npos) << result.err;
}

TEST(batch_command, mistakes_get_one_line) {
  const TempFolder folder;
  const auto input = folder.path() / "in.jsonl";
  std::ofstream(input) << "Once upon a time\n";
  const RunResult text = run_candor({"batch", input, folder.path() / "out.jsonl"});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_NE(text.err.find("line 1"), std::string::npos) << text.err;
  const RunResult missing = run_candor({"batch", folder.path() / "no.jsonl", folder.path() / "out2.jsonl"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("there is no such file"), std::string::npos) << missing.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out2.jsonl"));
  EXPECT_EQ(run_candor({"batch", input}).exit_code, 2);
}

}  // namespace
}  // namespace candor::testing
