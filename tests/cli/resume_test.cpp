// candor chat --resume: a conversation goes on where it was left.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "support/temp_folder.h"

namespace candor::testing::resumed_chats {
namespace {

nlohmann::json content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(std::string{std::istreambuf_iterator<char>(file), {}}, nullptr, false);
}

RunResult chat(const std::string& file, const std::string& lines) {
  return run_candor({"chat", "--resume", file, "-n", "8", "--temperature", "0"}, {.stdin_text = lines});
}

TEST(resumed_chat, goes_on_with_what_was_said) {
  const TempFolder folder;
  const std::string file = (folder.path() / "new/fox.json").string();
  const RunResult first = chat(file, "A story about a fox\n");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("a new conversation"), std::string::npos) << first.err;
  EXPECT_EQ(content_of(file)["messages"].size(), 2u);
  const RunResult second = chat(file, "And a hen?\n");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("1 turns of"), std::string::npos) << second.err;
  const auto kept = content_of(file);
  ASSERT_EQ(kept["messages"].size(), 4u);
  EXPECT_EQ(kept["messages"][0]["content"], "A story about a fox");
  EXPECT_EQ(kept["messages"][2]["content"], "And a hen?");
  const RunResult both =
      run_candor({"chat", "-n", "8", "--temperature", "0"}, {.stdin_text = "A story about a fox\nAnd a hen?\n"});
  EXPECT_EQ(both.out, first.out + second.out);
}

TEST(resumed_chat, is_saved_by_name_and_read_again) {
  const TempFolder folder;
  const std::string file = (folder.path() / "kept.json").string();
  ASSERT_EQ(run_candor({"chat", "-n", "4"}, {.stdin_text = "A cat\n/save " + file + "\n"}).exit_code, 0);
  EXPECT_EQ(content_of(file)["version"], 1);
  EXPECT_EQ(chat(file, "").exit_code, 0);
}

TEST(resumed_chat, what_is_no_conversation_is_one_line_and_left_alone) {
  const TempFolder folder;
  const std::string file = (folder.path() / "chat.json").string();
  const auto refused = [&](const std::string& content, const std::string& words) {
    std::ofstream(file) << content;
    const RunResult result = chat(file, "Hello\n");
    EXPECT_EQ(result.exit_code, 2) << content;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    std::ifstream again(file);
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>(again), {}}), content);
  };
  refused("hello", "no valid JSON");
  refused("{}", "no conversation");
  refused(R"({"version": 2, "messages": []})", "version 2");
  refused(R"({"version": 1, "messages": [5]})", "role and content");
  EXPECT_EQ(run_candor({"chat", "--resume", ""}, {.stdin_text = "Hello\n"}).exit_code, 2);
  EXPECT_EQ(run_candor({"chat", "--resume", ".."}, {.stdin_text = "Hello\n"}).exit_code, 2);
}

}  // namespace
}  // namespace candor::testing::resumed_chats
