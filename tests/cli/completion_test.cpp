// What is made of the command line: completions, the manual page, the version as JSON.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

std::string script(const char* what) {
  const RunResult result = run_candor({"completion", what});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

// What bash offers behind these words, the last of which is being typed.
std::string offered(const std::string& words) {
  const TempFolder folder;
  std::ofstream(folder.path() / "candor.bash") << script("bash");
  const std::string text = "source '" + (folder.path() / "candor.bash").string() + "'; COMP_WORDS=(candor " + words +
                           "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _candor; echo \"${COMPREPLY[*]}\"";
  const RunResult result = run_candor({"-c", text}, {.program = "bash"});
  EXPECT_EQ(result.err, "");
  return result.out;
}

TEST(completion, bash_offers_what_can_stand_there) {
  EXPECT_EQ(offered("tok"), "tokenize\n");
  EXPECT_EQ(offered("bench ''"), "limits generate serve drafts --help -h --help-all\n");
  EXPECT_EQ(offered("bench serve --ra"), "--rate\n");
  EXPECT_EQ(offered("run --device ''"), "auto cpu cuda reference\n");
  EXPECT_EQ(offered("run --predict ''"), "\n");
  const TempFolder folder;
  folder.file("model.gguf", "");
  const std::string path = (folder.path() / "model.gguf").string();
  EXPECT_EQ(offered("run -m " + path.substr(0, path.size() - 4)), path + "\n");
}

TEST(completion, every_shell_and_the_manual_know_commands_and_options) {
  for (const char* what : {"bash", "zsh", "fish", "man"}) {
    const std::string text = script(what);
    for (const char* word : {"serve", "explain", "limits"}) EXPECT_NE(text.find(word), std::string::npos) << what;
    const char* option = what == std::string("man") ? "\\-\\-top\\-p" : "top-p";
    EXPECT_NE(text.find(option), std::string::npos) << what;
    EXPECT_EQ(text.find("descriptor"), std::string::npos) << what << " shows what is not for people";
  }
}

// After a change of the command line: candor completion markdown >docs/options.md
TEST(completion, the_page_of_options_is_the_command_lines) {
  std::ifstream file(project_file("docs/options.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(script("markdown"), page);
}

TEST(completion, of_something_else_is_refused) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"completion"}, {"completion", "tcsh"}}) {
    const RunResult result = run_candor(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
  }
}

TEST(version, as_json_says_what_answers_depend_on) {
  const RunResult result = run_candor({"--version", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ("candor " + json.at("version").get<std::string>() + "\n", run_candor({"--version"}).out);
  EXPECT_TRUE(json.at("numerics").is_number_integer());
  EXPECT_EQ(json.at("kernels").at(0), "portable");
  EXPECT_EQ(run_candor({"--json"}).exit_code, 2);
}

TEST(health, of_nobody_is_one_line) {
  const RunResult result = run_candor({"health", "http://127.0.0.1:1"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(count_lines(result.err), 1) << result.err;
  EXPECT_NE(run_candor({"health", "nonsense"}).err.find("expected http:// or https://"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing
