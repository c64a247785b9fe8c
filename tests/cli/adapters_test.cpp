// --adapter and candor merge, as they are typed.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing::adapters {
namespace {

std::string adapter(const std::string& name) {
  return project_file("tests/adapters/goldens/" + name).string();
}
std::string base() {
  return (goldens() / "llama").string();
}

RunResult run_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", base(), "the engine", "--raw", "--temperature", "0", "-n", "16"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_candor(arguments);
}

double perplexity_of(const std::string& model, const std::vector<std::string>& more = {}) {
  const TempFolder folder;
  const std::string text = (folder.path() / "text").string();
  std::ofstream(text) << "the small engine writes what the model says, token by token, and says why";
  std::vector<std::string> arguments = {"eval", model, "--file", text, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunResult result = run_candor(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out).value("perplexity", 0.0);
}

TEST(cli_adapters, are_used_each_by_its_scale) {
  const std::string none = run_with({}).out, all = run_with({"--adapter", adapter("llama_all")}).out;
  EXPECT_NE(all, none);
  EXPECT_EQ(run_with({"--adapter", "a=" + adapter("llama_all")}).out, all);
  EXPECT_EQ(run_with({"--adapter", "a=" + adapter("llama_all") + ":1.0"}).out, all);
  EXPECT_EQ(run_with({"--adapter", adapter("llama_all") + ":0"}).out, none);
  EXPECT_EQ(run_with({"--adapter", adapter("llama_all") + "/adapter.gguf"}).out, all);
  const std::string both = run_with({"--adapter", adapter("llama_all"), "--adapter", adapter("llama_dora")}).out;
  EXPECT_NE(both, all);
  EXPECT_EQ(run_with({"--adapter", adapter("llama_all"), "--ranks", "2"}).out, all);
}

TEST(cli_adapters, a_merged_model_says_what_the_adapter_says) {
  const TempFolder folder;
  const std::string merged = (folder.path() / "merged.gguf").string(), hub = (folder.path() / "merged").string();
  const RunResult made = run_candor({"merge", base(), adapter("llama_all"), merged, "--type", "f32"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_EQ(run_candor({"merge", base(), adapter("llama_all"), hub, "--type", "f32"}).exit_code, 0);
  const double beside = perplexity_of(base(), {"--backend", "reference", "--adapter", adapter("llama_all")});
  EXPECT_NE(beside, perplexity_of(base(), {"--backend", "reference"}));
  EXPECT_NEAR(perplexity_of(merged, {"--backend", "reference"}), beside, 1e-4 * beside);
  EXPECT_NEAR(perplexity_of(hub, {"--backend", "reference"}), beside, 1e-4 * beside);
  const std::string half = (folder.path() / "half.gguf").string();
  ASSERT_EQ(run_candor({"merge", base(), adapter("llama_all") + ":0.5", half, "--type", "f32"}).exit_code, 0);
  EXPECT_NEAR(perplexity_of(half, {"--backend", "reference"}),
              perplexity_of(base(), {"--backend", "reference", "--adapter", adapter("llama_all") + ":0.5"}),
              1e-4 * beside);
}

struct Wrong {
  std::vector<std::string> arguments;
  const char* words;
};

TEST(cli_adapters, what_is_wrong_is_one_line) {
  const TempFolder folder;
  const std::string result = (folder.path() / "x.gguf").string();
  const Wrong kWrong[] = {
      {{"run", base(), "a", "--adapter", "nowhere"}, "no such file"},
      {{"run", base(), "a", "--adapter", "=x"}, "NAME=PATH"},
      {{"run", base(), "a", "--adapter", "x="}, "NAME=PATH"},
      {{"run", base(), "a", "--adapter", adapter("gpt2")}, "another model"},
      {{"run", base(), "a", "--adapter", adapter("llama_all") + ":1e9"}, "1000"},
      {{"run", base(), "a", "--adapter", adapter("llama_all"), "--adapter", adapter("llama_all")}, "two adapters"},
      {{"run", adapter("llama_all"), "a"}, "--adapter"},
      {{"run", adapter("llama_all") + "/adapter.gguf", "a"}, "--adapter"},
      {{"merge", base(), adapter("gpt2"), result}, "another model"},
      {{"merge", base(), base(), result}, "adapter_config.json"},
      {{"merge", base(), adapter("llama_all"), base()}, "both the source and the result"},
      {{"merge", base(), adapter("llama_all"), adapter("llama_all")}, "both the adapter and the result"},
      {{"merge", base(), adapter("llama_all") + ":nan", result}, "1000"},
      {{"merge", base(), adapter("llama_all"), result, "--type", "q9"}, "q9"}};
  for (const Wrong& wrong : kWrong) {
    const RunResult refused = run_candor(wrong.arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_EQ(count_lines(refused.err), 1) << refused.err;
    EXPECT_NE(refused.err.find(wrong.words), std::string::npos) << refused.err << wrong.words;
    EXPECT_EQ(refused.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(result));
}

}  // namespace
}  // namespace candor::testing::adapters
