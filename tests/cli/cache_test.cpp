// candor cache, and the prefix cache on disk as run, chat and serve use it.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "support/temp_folder.h"

namespace candor::testing::cache_commands {
namespace {

namespace fs = std::filesystem;

class CacheCommands : public ::testing::Test {
 protected:
  static std::string long_text(int n = 60) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "The cat sat by the door. ";
    return text;
  }
  RunResult candor(std::vector<std::string> arguments, const std::string& input = "") const {
    return run_candor(arguments, {.stdin_text = input, .environment = {"CANDOR_NO_DISK_CACHE=false"}});
  }
  RunResult run(const std::string& where, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run",    long_text(),     "--raw", "-n",          "4",
                                          "--json", "--temperature", "0",     "--cache-dir", where};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return candor(arguments);
  }
  int64_t disk_tokens(const RunResult& result) const {
    return nlohmann::json::parse(result.out)["usage"]["disk_tokens"].get<int64_t>();
  }
  const TempFolder folder_;
  const std::string cache_ = (folder_.path() / "prefixes").string();
};

TEST_F(CacheCommands, a_second_run_reads_what_the_first_one_computed) {
  const RunResult first = run(cache_);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(disk_tokens(first), 0);
  const RunResult second = run(cache_);
  EXPECT_GT(disk_tokens(second), 300);
  EXPECT_EQ(nlohmann::json::parse(first.out)["tokens"], nlohmann::json::parse(second.out)["tokens"]);
  EXPECT_EQ(disk_tokens(run(cache_, {"--no-disk-cache"})), 0);
  EXPECT_EQ(disk_tokens(run(cache_, {"--kv-type", "q8_0"})), 0) << "another K/V type";
  const std::string relative = fs::relative(cache_).string();
  EXPECT_GT(disk_tokens(run(relative)), 300) << relative;
}

TEST_F(CacheCommands, is_listed_verified_carried_elsewhere_and_cut_down) {
  ASSERT_EQ(run(cache_).exit_code, 0);
  const RunResult list = candor({"cache", "list", "--cache-dir", cache_, "--json"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  const auto json = nlohmann::json::parse(list.out);
  EXPECT_GT(json["blocks"], 10);
  EXPECT_EQ(json["models"][0]["kv_type"], "bf16");
  const std::string fingerprint = json["models"][0]["fingerprint"];
  EXPECT_NE(candor({"cache", "list", "--cache-dir", cache_}).out.find(fingerprint), std::string::npos);
  EXPECT_NE(candor({"cache", "verify", "--cache-dir", cache_}).out.find(" 0 damaged"), std::string::npos);

  const std::string file = (folder_.path() / "blocks").string();
  const std::string other = (folder_.path() / "other").string();
  ASSERT_EQ(candor({"cache", "export", file, "--cache-dir", cache_}).exit_code, 0);
  EXPECT_EQ(candor({"cache", "export", file, "--cache-dir", cache_}).exit_code, 2) << "it is there";
  ASSERT_EQ(candor({"cache", "import", file, "--cache-dir", other}).exit_code, 0);
  EXPECT_GT(disk_tokens(run(other)), 300);

  EXPECT_EQ(candor({"cache", "prune", "--cache-dir", cache_}).exit_code, 2) << "of what?";
  EXPECT_NE(candor({"cache", "prune", "--cache-dir", cache_, "--model", "ffff"}).out.find("0 blocks removed"),
            std::string::npos);
  EXPECT_EQ(candor({"cache", "prune", "--cache-dir", cache_, "--model", fingerprint.substr(0, 6)}).exit_code, 0);
  EXPECT_EQ(disk_tokens(run(cache_)), 0);
}

TEST_F(CacheCommands, damaged_blocks_are_told_and_computed_again) {
  const RunResult first = run(cache_);
  for (const auto& file : fs::directory_iterator(cache_)) {
    if (file.path().extension() == ".index") continue;
    std::fstream stream(file.path(), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(5000);
    stream.put('x');
  }
  const RunResult verified = candor({"cache", "verify", "--cache-dir", cache_});
  EXPECT_EQ(verified.exit_code, 2);
  EXPECT_NE(verified.out.find("1 damaged"), std::string::npos) << verified.out;
  EXPECT_EQ(nlohmann::json::parse(run(cache_).out)["tokens"], nlohmann::json::parse(first.out)["tokens"]);
}

TEST_F(CacheCommands, a_system_prompt_that_was_warmed_is_there_for_a_chat) {
  const std::string file = (folder_.path() / "system.txt").string();
  std::ofstream(file) << long_text(20);
  const RunResult warmed = candor({"cache", "warm", "--file", file, "--cache-dir", cache_});
  ASSERT_EQ(warmed.exit_code, 0) << warmed.err;
  EXPECT_NE(warmed.out.find("tokens read"), std::string::npos);
  const RunResult asked =
      candor({"run", "Hello", "--system", long_text(20), "-n", "2", "--json", "--cache-dir", cache_});
  ASSERT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_GE(disk_tokens(asked), 64);
  EXPECT_EQ(candor({"cache", "warm", "--cache-dir", cache_}).exit_code, 2);
  std::ofstream(folder_.path() / "bad.json") << "{}";
  EXPECT_EQ(
      candor({"cache", "warm", "--messages", (folder_.path() / "bad.json").string(), "--cache-dir", cache_}).exit_code,
      2);
}

TEST_F(CacheCommands, a_conversation_goes_on_where_yesterdays_blocks_lie) {
  const std::string chat = (folder_.path() / "c.json").string();
  ASSERT_EQ(candor({"chat", "--resume", chat, "-n", "8", "--cache-dir", cache_}, long_text(8) + "\n").exit_code, 0);
  const RunResult second = candor({"chat", "--resume", chat, "-n", "8", "--cache-dir", cache_}, "And then?\n");
  EXPECT_NE(second.err.find("of them on disk"), std::string::npos) << second.err;
}

TEST_F(CacheCommands, where_there_can_be_none_one_line_says_so_and_the_answer_comes) {
  std::ofstream(folder_.path() / "file") << "x";
  const RunResult result = run((folder_.path() / "file").string());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("no cache on disk"), std::string::npos) << result.err;
  EXPECT_NE(run(cache_, {"--cache-size", "1000000000"}).err.find("whose disk has"), std::string::npos);
  EXPECT_EQ(run(cache_, {"--cache-size", "0"}).exit_code, 2);
  EXPECT_EQ(candor({"cache", "list", "--cache-dir", "/nowhere"}).exit_code, 2);
  EXPECT_EQ(candor({"cache", "import", "/nowhere", "--cache-dir", cache_}).exit_code, 2);
  EXPECT_EQ(candor({"cache"}).exit_code, 2);
}

}  // namespace
}  // namespace candor::testing::cache_commands
