// A system that refuses: no descriptors, no memory, no threads, a full disk, a disk that fails or is slow, reads and
// writes that do half, a signal in the middle. At every place where it happens the command ends with one line and exit
// 2 (130 after a signal), what was there before is untouched, nothing half written has a final name and no temporary
// file is left; or it goes on and the result is right.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "program.h"
#include "support/mock_hub.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

struct Fault {
  const char* call;  // as in inject.cpp
  int error;         // 0: half is done; -S: signal S
  bool stays = false;
};

constexpr Fault kNoDescriptors = {"open", EMFILE};
constexpr Fault kNoMapping = {"mmap", ENOMEM};
constexpr Fault kNoMemory = {"new", ENOMEM};
constexpr Fault kNoThread = {"thread", EAGAIN};
constexpr Fault kStopped = {"write", -SIGTERM};
constexpr Fault kHungUp = {"write", -SIGHUP};
constexpr Fault kWriteFails[] = {{"open", EACCES},        {"write", ENOSPC},  {"write", ENOSPC, true},
                                 {"write", 0},            {"fsync", EIO},     {"rename", EACCES},
                                 {"mkdir", ENOSPC, true}, {"symlink", ENOSPC}};

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef CANDOR_SANITIZED
    GTEST_SKIP() << "the sanitizer has its own allocator and wants to be loaded first";
#endif
    CANDOR_REQUIRE_DATA(project_file("models/pocket/pocket-draft-q8_0.gguf"));
    fs::create_directory(root());
    fs::copy_file(project_file("models/pocket/pocket-draft-q8_0.gguf"), model());
  }

  // What counts happens below it.
  fs::path root() const { return folder_.path() / "root"; }
  fs::path model() const { return root() / "model.gguf"; }

  RunResult run_with(const std::vector<std::string>& arguments, const Fault& fault, long n) const {
    RunInput input;
    input.environment = environment;
    input.environment.insert(input.environment.end(),
                             {"LD_PRELOAD=" CANDOR_INJECT, "CANDOR_FAULT_ROOT=" + root().string(),
                              "CANDOR_FAULT_COUNT=" + counted().string(),
                              std::string("CANDOR_FAULT=") + fault.call + ":" + std::to_string(n) + ":" +
                                  std::to_string(fault.error) + (fault.stays ? ":stays" : "")});
    input.interrupt_at = arguments[0] == "serve" ? "candor serves" : "";
    return run_candor(arguments, input);
  }
  fs::path counted() const { return folder_.path() / "count"; }

  // Every file of the root with its content.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(root())) {
      if (entry.is_regular_file()) found[fs::relative(entry.path(), root()).string()] = read_text(entry.path());
    }
    return found;
  }

  // Lets the command meet the fault at the first places, at some later ones, and at the last.
  void sweep(const std::vector<std::string>& arguments, const Fault& fault) {
    const std::string what = arguments[0] + " with " + fault.call + " " + std::to_string(fault.error);
    prepare();
    const auto before = files();
    const RunResult whole = run_with(arguments, fault, 0);
    EXPECT_EQ(whole.exit_code, 0) << what << ": " << whole.err;
    const auto after = files();
    long n_calls = 0;
    std::ifstream(counted()) >> n_calls;
    for (long n = 1; n <= n_calls; n = n < 6 ? n + 1 : n == n_calls ? n + 1 : std::min(n * 2, n_calls)) {
      prepare();
      const RunResult result = run_with(arguments, fault, n);
      const std::string place = what + " at call " + std::to_string(n) + " of " + std::to_string(n_calls) + ": ";
      if (result.exit_code == 0) {
        EXPECT_TRUE(same_result(files(), after)) << place << result.err;
        continue;
      }
      EXPECT_EQ(result.exit_code, fault.error < 0 ? 130 : 2) << place << result.err;
      EXPECT_EQ(count_lines(result.err), 1) << place << result.err;
      EXPECT_TRUE(has_reason(result.err, fault)) << place << result.err;
      EXPECT_TRUE(same_result(files(), after) || is_untouched(before)) << place << result.err;
    }
  }

  static bool has_reason(const std::string& err, const Fault& fault) {
    const auto has = [&err](const char* text) { return err.find(text) != std::string::npos; };
    if (fault.error < 0) return has("interrupted") || has("stopped");
    return has(std::strerror(fault.error)) || has("memory") || (fault.error == 0 && has(std::strerror(ENOSPC)));
  }

  // The result does not depend on how long the disk takes.
  void expect_no_change_on_a_slow_disk(const std::vector<std::string>& arguments) {
    prepare();
    const RunResult quick = run_with(arguments, {"none", 0}, 0);
    const auto after = files();
    prepare();
    environment.push_back("CANDOR_FAULT_DELAY_US=20000");
    const RunResult slow = run_with(arguments, {"none", 0}, 0);
    EXPECT_EQ(slow.exit_code, 0) << slow.err;
    EXPECT_EQ(slow.out, quick.out);
    EXPECT_TRUE(same_result(files(), after)) << slow.err;
  }

  virtual void prepare() {}
  virtual bool same_result(const std::map<std::string, std::string>& now,
                           const std::map<std::string, std::string>& expected) const {
    return now == expected;
  }
  virtual bool is_untouched(const std::map<std::string, std::string>& before) { return files() == before; }

  TempFolder folder_;
  std::vector<std::string> environment;
};

TEST_F(Faults, while_a_model_is_shown) {
  for (const Fault& fault : {kNoDescriptors, kNoMapping, kNoMemory}) sweep({"show", model().string()}, fault);
}

TEST_F(Faults, while_a_model_is_loaded_and_runs) {
  for (const Fault& fault : {kNoDescriptors, kNoMapping, kNoThread}) {
    sweep({"run", model().string(), "-p", "hi", "-n", "1", "-t", "2", "--raw"}, fault);
  }
}

TEST_F(Faults, while_memory_runs_out_on_the_way_to_the_first_token) {
  sweep({"run", model().string(), "-p", "hi", "-n", "1", "-t", "2", "--raw", "--quantize", "q4_0"}, kNoMemory);
}

TEST_F(Faults, of_a_slow_disk_change_no_answer) {
  expect_no_change_on_a_slow_disk({"run", model().string(), "-p", "hi", "-n", "4", "-t", "2", "--seed", "1", "--raw"});
}

TEST_F(Faults, while_a_server_starts) {
  for (const Fault& fault : {kNoDescriptors, kNoMapping}) {
    sweep({"serve", model().string(), "--port", "0", "--drain-seconds", "0"}, fault);
  }
}

class WritingFaults : public Faults {
 protected:
  void prepare() override {
    fs::remove_all(root() / "result");
    std::ofstream(root() / "result.gguf") << "an older result";
  }
};

TEST_F(WritingFaults, while_a_model_is_quantised) {
  const std::vector<std::string> arguments = {
      "quantize", "--force", "-t", "2", model().string(), (root() / "result.gguf").string(), "q4_0"};
  for (const Fault& fault : kWriteFails) sweep(arguments, fault);
  for (const Fault& fault : {kNoDescriptors, kNoMapping, kNoMemory, kNoThread, kStopped, kHungUp}) {
    sweep(arguments, fault);
  }
  expect_no_change_on_a_slow_disk(arguments);
}

TEST_F(WritingFaults, while_a_model_is_converted) {
  const std::vector<std::string> arguments = {"convert", "--force", model().string(),
                                              (root() / "result.gguf").string()};
  for (const Fault& fault : kWriteFails) sweep(arguments, fault);
  sweep(arguments, kStopped);
}

class FolderFaults : public Faults {
 protected:
  void prepare() override { fs::remove_all(root() / "result"); }
  // Files that are whole may stand there already; the weights come last, under their final name only when they are all
  // there.
  bool is_untouched(const std::map<std::string, std::string>&) override {
    for (const auto& [name, content] : files()) {
      if (name.find(".part") != std::string::npos) return false;
    }
    return true;
  }
};

TEST_F(FolderFaults, while_a_model_becomes_a_folder) {
  const std::vector<std::string> arguments = {"convert", model().string(), (root() / "result").string()};
  for (const Fault& fault : kWriteFails) sweep(arguments, fault);
  for (const Fault& fault : {kNoMemory, kStopped}) sweep(arguments, fault);
  expect_no_change_on_a_slow_disk(arguments);
}

class PullFaults : public Faults {
 protected:
  PullFaults() {
    const std::string digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // of "abc"
    hub_.pages["/api/models/u/r/revision/main?blobs=true"] =
        std::string("{\"sha\":\"") + kCommit +
        "\",\"siblings\":[{\"rfilename\":\"m.gguf\",\"size\":3,\"lfs\":{\"sha256\":\"" + digest + "\"}}]}";
    hub_.pages[std::string("/u/r/resolve/") + kCommit + "/m.gguf"] = "abc";
    environment = {"HF_ENDPOINT=" + hub_.endpoint(), "HF_HUB_CACHE=" + (root() / "cache").string(), "HF_TOKEN="};
  }
  void prepare() override { fs::remove_all(root() / "cache"); }
  // The next pull makes all good.
  bool is_untouched(const std::map<std::string, std::string>&) override {
    const RunResult again = run_with({"pull", "u/r"}, {"none", 0}, 0);
    const fs::path file = root() / "cache" / "models--u--r" / "snapshots" / kCommit / "m.gguf";
    const std::string ref = read_text(root() / "cache/models--u--r/refs/main");
    return again.exit_code == 0 && read_text(file) == "abc" && ref == kCommit;
  }

  MockHub hub_;
};

TEST_F(PullFaults, while_a_model_is_fetched) {
  for (const Fault& fault : kWriteFails) sweep({"pull", "u/r"}, fault);
  for (const Fault& fault : {kNoDescriptors, Fault{"read", EIO}, Fault{"read", 0}, kStopped}) {
    sweep({"pull", "u/r"}, fault);
  }
  expect_no_change_on_a_slow_disk({"pull", "u/r"});
}

}  // namespace
}  // namespace candor::testing
