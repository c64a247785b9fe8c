// Another program cuts the model's file while the command reads it: an answer or one line, never a signal.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

class CutWhileRead : public ::testing::Test {
 protected:
  // Runs the command with a copy of the file, which is cut after `ms`.
  void expect_an_answer_or_a_line(const fs::path& source, const std::vector<std::string>& before, int ms) const {
    const fs::path copy = folder_.path() / "model.gguf";
    fs::copy_file(source, copy, fs::copy_options::overwrite_existing);
    std::thread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
      fs::resize_file(copy, 1);
    });
    std::vector<std::string> arguments = before;
    arguments.push_back(copy.string());
    if (before[0] == "quantize") arguments.insert(arguments.end(), {(folder_.path() / "out.gguf").string(), "q8_0"});
    const RunResult result = run_candor(arguments);
    cutter.join();
    EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << result.exit_code << " after " << ms << " ms";
    if (result.exit_code == 2) {
      EXPECT_EQ(count_lines(result.err), 1) << result.err;
    }
  }

  TempFolder folder_;
};

TEST_F(CutWhileRead, no_moment_gives_a_signal) {
  const fs::path model = project_file("models/pocket/pocket-f32.gguf");
  const fs::path draft = project_file("models/pocket/pocket-draft-q8_0.gguf");
  CANDOR_REQUIRE_DATA(model);
  CANDOR_REQUIRE_DATA(draft);
  for (int ms = 1; ms < 200; ms += 23) {
    expect_an_answer_or_a_line(model, {"run", "-n", "2", "-p", "hi", "-m"}, ms);
    expect_an_answer_or_a_line(model, {"quantize", "--force"}, ms);
    expect_an_answer_or_a_line(model, {"show", "-m"}, ms / 4);
    expect_an_answer_or_a_line(draft, {"run", "-n", "2", "-p", "hi", "--draft"}, ms);
  }
}

}  // namespace
}  // namespace candor::testing
