// candor quantize --target-bits and --target-size: files within the size, and what cannot be met.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "program.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

class TargetSize : public ::testing::Test {
 protected:
  std::string in_folder(const std::string& name) const { return (folder_.path() / name).string(); }
  RunResult quantize(const std::string& to, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"quantize", project_file("models/pocket/pocket-f32.gguf").string(), to};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_candor(arguments);
  }

 private:
  const TempFolder folder_;
};

TEST_F(TargetSize, files_are_within_it_and_close_to_it) {
  uintmax_t before = 0;
  for (const char* bits : {"2.5", "3.5", "4.5", "6"}) {
    const std::string to = in_folder(std::string(bits) + ".gguf");
    const RunResult made = quantize(to, {"--target-bits", bits});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_NE(made.err.find("bits a weight: "), std::string::npos) << made.err;
    const uintmax_t n_bytes = std::filesystem::file_size(to);
    EXPECT_GT(n_bytes, before);
    before = n_bytes;
    EXPECT_EQ(run_candor({"run", to, "Once upon a time", "-n", "4", "--temperature", "0"}).exit_code, 0);
  }
  const std::string to = in_folder("size.gguf");
  const RunResult made = quantize(to, {"--target-size", "1.5MB", "--tensor-type", "blk.0.ffn_up.weight=q8_0"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_LE(std::filesystem::file_size(to), 1'500'000u);
  EXPECT_GT(std::filesystem::file_size(to), 1'450'000u);
  const std::string shown = run_candor({"show", to, "--tensors"}).out;
  EXPECT_NE(shown.find("Q8_0"), std::string::npos) << shown;
}

TEST_F(TargetSize, mistakes_are_said_in_one_line_and_write_nothing) {
  const std::string to = in_folder("q.gguf");
  const auto expect = [&](const std::vector<std::string>& arguments, const char* words) {
    const RunResult refused = quantize(to, arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_NE(refused.err.find(words), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(to));
  };
  expect({"--target-bits", "1.5"}, "the smallest that this model takes is ");
  expect({"--target-size", "100KB"}, "the smallest that this model takes is ");
  expect({"--target-size", "a lot"}, "expected one as 12GB, 700MB or 1.5GiB");
  expect({"--target-size", "-3GB"}, "expected one as");
  expect({"--target-bits", "nan"}, "target-bits");
  expect({"q4_k_m", "--target-bits", "4"}, "target-bits");
  expect({"--target-bits", "4", "--target-size", "1MB"}, "target-");
  expect({}, "no type given");
}

}  // namespace
}  // namespace candor::testing
