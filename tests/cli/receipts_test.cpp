// candor run --receipt and candor verify: as a person uses them, and what they get wrong.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"
#include "support/temp_folder.h"

namespace candor::testing::receipt_commands {
namespace {

using Json = nlohmann::ordered_json;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ReceiptCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    const RunResult made = run_candor({"run", "A story", "-n", "20", "-s", "7", "--receipt", path("a.json")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    receipt_ = Json::parse(content_of(path("a.json")));
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const Json& receipt) { std::ofstream(path(name)) << receipt.dump(); }

  const TempFolder folder_;
  Json receipt_;
};

TEST_F(ReceiptCommands, an_answer_is_verified_and_a_forged_one_is_not) {
  const RunResult good = run_candor({"verify", path("a.json")});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_EQ(good.out, "verified: 20 of 20 tokens, logprobs equal\n");
  Json forged = receipt_;
  forged["answers"][0]["tokens"][4] = 99;
  write("b.json", forged);
  const RunResult bad = run_candor({"verify", path("b.json"), "-t", "1"});
  EXPECT_EQ(bad.exit_code, 4);
  EXPECT_NE(bad.out.find("differs at token 5: the receipt has 99 "), std::string::npos) << bad.out;
}

TEST_F(ReceiptCommands, a_folder_is_a_test_suite) {
  Json forged = receipt_;
  forged["sampling"]["seed"] = "8";
  write("b.json", forged);
  write("c.json", {{"receipt", 9}});
  const RunResult all = run_candor({"verify", folder_.path().string(), "--junit", path("junit.xml")});
  EXPECT_EQ(all.exit_code, 4);
  EXPECT_NE(all.out.find("1 of 3 receipts verified"), std::string::npos) << all.out;
  EXPECT_NE(all.err.find("version 9"), std::string::npos) << all.err;
  const std::string xml = content_of(path("junit.xml"));
  EXPECT_NE(xml.find(R"(tests="3" failures="1" errors="1")"), std::string::npos) << xml;
  const RunResult json = run_candor({"verify", path("a.json"), path("b.json"), "--json"});
  EXPECT_EQ(json.exit_code, 4);
  const Json first = Json::parse(json.out.substr(0, json.out.find('\n')));
  EXPECT_EQ(first["verified"], true);
  EXPECT_EQ(first["tokens"], 20);
}

TEST_F(ReceiptCommands, what_cannot_be_checked_is_one_line) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const RunResult result = run_candor(arguments);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_EQ(result.out.find("verified:"), std::string::npos);
  };
  refused({"verify"}, "no receipt given");
  refused({"verify", path("none.json")}, "No such file");
  refused({"verify", path("a.json"), path("nothing")}, "neither a receipt (*.json) nor a model");
  std::filesystem::create_directory(path("empty"));
  refused({"verify", path("empty")}, "has no receipt");
  std::ofstream(path("text.json")) << "hello";
  refused({"verify", path("text.json")}, "no valid JSON");
  std::ofstream(path("large.json")) << std::string(100'000'000, ' ');
  refused({"verify", path("large.json")}, "100000000 bytes");
  std::filesystem::remove(path("large.json"));
  Json other = receipt_;
  other["model"]["fingerprint"] = "0123456789abcdef";
  write("other.json", other);
  refused({"verify", path("other.json")}, "another model");
  other = receipt_;
  other["prompt"] = Json::array({1'000'000});
  write("ids.json", other);
  refused({"verify", path("ids.json")}, "not in the vocabulary");
  other = receipt_;
  other["model"]["kv_type"] = "f64";
  write("kv.json", other);
  refused({"verify", path("kv.json")}, "f64");
  other = receipt_;
  other["model"]["context"] = 2'000'000'000;
  write("context.json", other);
  refused({"verify", path("context.json")}, "n_ctx is 2000000000");
  refused({"run", "A", "-n", "2", "--receipt-key", path("a.json")}, "give both");
  refused({"run", "A", "-n", "2", "--receipt", path("x.json"), "--receipt-key", path("a.json")}, "no Ed25519");
  refused({"run", "A", "-n", "2", "--receipt", path("no/folder/x.json")}, "x.json");
}

TEST_F(ReceiptCommands, signed_ones_are_their_signers) {
  if (run_candor({"version"}, {.program = "openssl"}).exit_code != 0) GTEST_SKIP() << "no openssl program";
  for (const std::string name : {"mine", "other"}) {
    ASSERT_EQ(run_candor({"genpkey", "-algorithm", "ed25519", "-out", path(name)}, {.program = "openssl"}).exit_code,
              0);
    ASSERT_EQ(run_candor({"pkey", "-in", path(name), "-pubout", "-out", path(name + ".pub")}, {.program = "openssl"})
                  .exit_code,
              0);
  }
  const RunResult made =
      run_candor({"run", "A story", "-n", "9", "--receipt", path("s.json"), "--receipt-key", path("mine")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(run_candor({"verify", path("s.json")}).exit_code, 0);
  EXPECT_EQ(run_candor({"verify", path("s.json"), "--signer", path("mine.pub")}).exit_code, 0);
  EXPECT_EQ(run_candor({"verify", path("s.json"), "--signer", path("other.pub")}).exit_code, 2);
  EXPECT_EQ(run_candor({"verify", path("a.json"), "--signer", path("mine.pub")}).exit_code, 2);
  Json forged = Json::parse(content_of(path("s.json")));
  forged["made_by"] = "somebody";
  write("f.json", forged);
  EXPECT_EQ(run_candor({"verify", path("f.json")}).exit_code, 2);
}

}  // namespace
}  // namespace candor::testing::receipt_commands
