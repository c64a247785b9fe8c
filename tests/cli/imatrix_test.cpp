// candor imatrix, and candor quantize with what it wrote.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing::imatrix {
namespace {

const std::string kText = "Once upon a time, there was a little fox named Fern. One day, Fern went to the forest.";

class Imatrix : public ::testing::Test {
 protected:
  std::string in_folder(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string model() const { return project_file("models/pocket/pocket-f32.gguf").string(); }
  RunResult gather(const std::string& to, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"imatrix", model(), kText, "-o", to};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_candor(arguments);
  }
  RunResult quantize(const std::string& imatrix, const std::string& to) const {
    return run_candor({"quantize", "--imatrix", imatrix, model(), to, "iq3_s"});
  }

 private:
  const TempFolder folder_;
};

TEST_F(Imatrix, is_gathered_and_taken) {
  const std::string file = in_folder("i.gguf");
  const RunResult made = gather(file);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.err.find("29 tensors over "), std::string::npos) << made.err;
  const std::string to = in_folder("q.gguf");
  const RunResult written = quantize(file, to);
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const RunResult plain = run_candor({"quantize", model(), in_folder("p.gguf"), "iq3_s"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(std::filesystem::file_size(to), std::filesystem::file_size(in_folder("p.gguf")));
  const RunResult ran = run_candor({"run", to, "Once upon a time", "-n", "8", "--temperature", "0"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

TEST_F(Imatrix, mistakes_are_said_in_one_line_and_write_nothing) {
  const std::string file = in_folder("i.gguf");
  ASSERT_EQ(gather(file).exit_code, 0);
  const RunResult again = gather(file);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_NE(again.err.find("--force"), std::string::npos) << again.err;
  EXPECT_EQ(gather(file, {"--force"}).exit_code, 0);
  const RunResult imatrix_as_model = run_candor({"run", file, "Once"});
  EXPECT_NE(imatrix_as_model.err.find("an importance matrix and no model"), std::string::npos) << imatrix_as_model.err;
  const RunResult model_as_imatrix = quantize(model(), in_folder("q.gguf"));
  EXPECT_NE(model_as_imatrix.err.find("expected \"imatrix\""), std::string::npos) << model_as_imatrix.err;
  const std::string other = project_file("models/pocket/pocket-draft-q8_0.gguf").string();
  const RunResult of_another = run_candor({"quantize", "--imatrix", file, other, in_folder("q.gguf"), "iq3_s"});
  EXPECT_NE(of_another.err.find("another model"), std::string::npos) << of_another.err;
  for (const RunResult& result : {imatrix_as_model, model_as_imatrix, of_another}) {
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(count_lines(result.err), 1) << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(in_folder("q.gguf")));
  const RunResult short_text = run_candor({"imatrix", model(), "", "-o", in_folder("s.gguf")});
  EXPECT_NE(short_text.exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(in_folder("s.gguf")));
}

TEST_F(Imatrix, no_source_is_replaced) {
  const std::string copy = in_folder("model.gguf");
  std::filesystem::copy_file(model(), copy);
  const std::string text = in_folder("text.txt");
  std::ofstream(text) << kText;
  const std::string file = in_folder("i.gguf");
  ASSERT_EQ(gather(file).exit_code, 0);
  const std::vector<std::vector<std::string>> commands = {
      {"imatrix", "-m", copy, kText, "-o", copy, "--force"},
      {"imatrix", "-m", copy, "-f", text, "-o", text, "--force"},
      {"quantize", copy, file, "iq3_s", "--imatrix", file, "--force"},
      {"quantize", copy, copy, "iq3_s", "--force"},
  };
  for (const auto& command : commands) {
    const RunResult result = run_candor(command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("is both the source and the result"), std::string::npos) << result.err;
  }
  EXPECT_EQ(std::filesystem::file_size(copy), std::filesystem::file_size(model()));
  EXPECT_EQ(std::filesystem::file_size(text), kText.size());
}

TEST_F(Imatrix, an_empty_name_or_size_is_not_one_that_is_left_out) {
  for (const auto& [option, part] : {std::pair{"--imatrix", "no such file"}, {"--target-size", "size ''"}}) {
    std::vector<std::string> command = {"quantize", model(), in_folder("e.gguf"), option, ""};
    if (std::string(option) == "--imatrix") command.emplace_back("iq3_s");
    const RunResult result = run_candor(command);
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(in_folder("e.gguf")));
  }
}

}  // namespace
}  // namespace candor::testing::imatrix
