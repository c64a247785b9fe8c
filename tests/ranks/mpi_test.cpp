// Ranks that mpirun started, as its users start them: the same bits, what is refused, and what happens when one is
// lost. All on this host, within its memory as well as by MPI alone.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cli/program.h"
#include "engine_fixture.h"
#include "model/model.h"
#include "model/rank_splits.h"
#include "processes.h"
#include "server_client.h"
#include "support/temp_folder.h"

namespace candor {
namespace {

using testing::becomes_true;
using testing::children_of;
using testing::RunInput;
using testing::RunResult;

constexpr const char* kByMpiAlone = "CANDOR_RANKS_LINK=mpi";

// mpirun's words for root in a container, and for more ranks than processors.
const std::vector<std::string> kManyRanks = {"--allow-run-as-root", "--oversubscribe"};
const std::vector<std::string> kEachItsCore = {"--allow-run-as-root"};

// mpirun that is ended by a signal leaves its session's files: they are in a folder of this run.
RunResult run_under_mpi(int n_ranks, std::vector<std::string> program, std::vector<std::string> environment = {},
                        std::vector<std::string> arguments = kManyRanks) {
  const testing::TempFolder session;
  environment.push_back("TMPDIR=" + session.path().string());
  arguments.insert(arguments.end(), {"-n", std::to_string(n_ranks)});
  arguments.insert(arguments.end(), program.begin(), program.end());
  RunInput input{.program = CANDOR_MPIRUN, .environment = environment};
  return testing::run_candor(arguments, input);
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class Mpirun : public testing::TinyModelTest {
 protected:
  void SetUp() override {
    if (std::string(CANDOR_MPIRUN).empty()) GTEST_SKIP() << "built without MPI: apt install openmpi-bin libopenmpi-dev";
  }
  std::filesystem::path small_model(int32_t n_heads = 4, int32_t n_kv_heads = 4) {
    testing::TinyModelOptions model = testing::tiny_model_of(DType::kQ4_K, 64, 256);
    model.n_heads = n_heads;
    model.n_kv_heads = n_kv_heads;
    model.ffn_dim = 512;
    model.context_tokens = 8192;
    return tiny_path(model);
  }
  std::string answers(const std::filesystem::path& model, int n_ranks, const std::vector<std::string>& environment = {},
                      const std::vector<std::string>& more = {}) {
    const std::string out = folder_.path() / "answers";
    std::filesystem::remove(out);
    std::vector<std::string> program = {CANDOR_MPI_ANSWERS, model.string(), out};
    program.insert(program.end(), more.begin(), more.end());
    const RunResult result = run_under_mpi(n_ranks, program, environment);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return bytes_of(out);
  }
};

struct Subject {
  const char* name;
  const char* family;  // of tests/families; nullptr: a tiny model with heads as below
  int32_t n_heads = 4;
  int32_t n_kv_heads = 4;
};

class MpirunBits : public Mpirun, public ::testing::WithParamInterface<Subject> {};

TEST_P(MpirunBits, are_those_of_one_rank) {
  const Subject& subject = GetParam();
  // Sums of bf16 products over such small widths come out the same in any order; those of q8_0 do not.
  const auto path = subject.family == nullptr
                        ? small_model(subject.n_heads, subject.n_kv_heads)
                        : quantised_path(testing::goldens() / subject.family / "model.gguf", "q8_0");
  const std::string expected = answers(path, 1);
  ASSERT_FALSE(expected.empty());
  EXPECT_NE(answers(path, 1, {}, {"sum"}), expected) << "sums of parts went unnoticed";
  const auto file = formats::open_model_file(path);
  ASSERT_TRUE(file);
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec);
  for (const int n_ranks : {2, 3, 4}) {
    if (n_ranks > model::most_ranks(*spec)) continue;
    EXPECT_TRUE(answers(path, n_ranks, {kByMpiAlone}) == expected) << n_ranks << " ranks by MPI";
    if (n_ranks != 3) continue;
    EXPECT_TRUE(answers(path, n_ranks) == expected) << n_ranks << " ranks by shared memory";
  }
}

INSTANTIATE_TEST_SUITE_P(models, MpirunBits,
                         ::testing::Values(Subject{"dense", nullptr},
                                           Subject{"fewer_kv_heads_than_ranks", nullptr, 8, 2},
                                           Subject{"experts", "mixtral"}, Subject{"recurrent", "qwen3_5_text"}),
                         [](const auto& subject) { return std::string(subject.param.name); });

TEST_F(Mpirun, the_command_gives_one_ranks_answer_once) {
  const std::string model = small_model();
  const std::vector<std::string> arguments = {"run", "-m", model, "--raw", "-s", "5", "-n", "20", "hello"};
  const RunResult one = testing::run_candor(arguments);
  std::vector<std::string> program = {CANDOR_PROGRAM};
  program.insert(program.end(), arguments.begin(), arguments.end());
  for (const std::vector<std::string>& environment : {std::vector<std::string>{}, {kByMpiAlone}}) {
    const RunResult two = run_under_mpi(2, program, environment);
    EXPECT_EQ(two.exit_code, 0) << two.err;
    EXPECT_EQ(two.out, one.out);
  }
}

TEST_F(Mpirun, commands_without_ranks_run_once) {
  const std::string path = small_model();
  const RunResult shown = run_under_mpi(3, {CANDOR_PROGRAM, "show", path});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out, testing::run_candor({"show", path}).out);
}

TEST_F(Mpirun, what_is_wrong_is_one_line_of_rank_0) {
  const std::string model = small_model();
  // mpirun has words of its own about a code that is not 0.
  const auto own_line = [](const RunResult& result) {
    const size_t begin = result.err.find("candor: ");
    EXPECT_EQ(result.err.find("candor: ", begin + 1), std::string::npos) << result.err;
    return begin == std::string::npos ? "" : result.err.substr(begin, result.err.find('\n', begin) - begin);
  };
  const RunResult other = run_under_mpi(
      1, {CANDOR_PROGRAM, "run", "-m", model, "--raw", "-n", "3", "hello", ":", "-n", "1", CANDOR_PROGRAM, "run", "-m",
          model, "--raw", "-n", "4", "hello"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(own_line(other).find("rank 1 (host "), std::string::npos) << other.err;
  EXPECT_NE(own_line(other).find("-n 4 hello', and rank 0 as"), std::string::npos) << other.err;
  const RunResult count = run_under_mpi(2, {CANDOR_PROGRAM, "run", "-m", model, "--ranks", "3", "hello"});
  EXPECT_EQ(count.exit_code, 2);
  EXPECT_NE(own_line(count).find("mpirun started 2 ranks"), std::string::npos) << count.err;
  for (const std::vector<std::string>& models :
       {std::vector<std::string>{"-m", model}, {"-m", "a=" + model, "-m", "b=" + model}}) {
    std::vector<std::string> serve = {CANDOR_PROGRAM, "serve", "--restart"};
    serve.insert(serve.end(), models.begin(), models.end());
    const RunResult restarted = run_under_mpi(2, serve);
    EXPECT_EQ(restarted.exit_code, 2);
    EXPECT_NE(own_line(restarted).find("--restart: ranks that mpirun started"), std::string::npos) << restarted.err;
  }
  const RunResult missing = run_under_mpi(2, {CANDOR_PROGRAM, "run", "-m", "/nonexistent.gguf", "hello"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(own_line(missing).find("/nonexistent.gguf"), std::string::npos) << missing.err;
  const RunResult many = run_under_mpi(9, {CANDOR_PROGRAM, "run", "-m", model, "hello"});
  EXPECT_EQ(many.exit_code, 2);
  EXPECT_NE(own_line(many).find("can use 4"), std::string::npos) << many.err;
}

// `run` by two ranks: the program, and beside it what `second` starts.
RunResult run_beside(const std::string& model, const std::vector<std::string>& second) {
  const std::vector<std::string> run = {"run", "-m", model, "--raw", "-n", "3", "hello"};
  std::vector<std::string> both = {CANDOR_PROGRAM};
  both.insert(both.end(), run.begin(), run.end());
  both.insert(both.end(), {":", "-n", "1"});
  both.insert(both.end(), second.begin(), second.end());
  both.insert(both.end(), run.begin(), run.end());
  return run_under_mpi(1, both);
}

// The program with another number of what ranks say to each other.
TEST_F(Mpirun, a_rank_of_another_version_is_named) {
  std::string program = bytes_of(CANDOR_PROGRAM);
  const std::string version = std::string(1, '\0') + " ranks 2";
  const size_t at = program.find(version + '\0');
  ASSERT_NE(at, std::string::npos) << "protocol_version() stands elsewhere";
  program[at + version.size() - 1] = '9';
  const std::filesystem::path other = folder_.path() / "other";
  std::ofstream(other, std::ios::binary) << program;
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  const RunResult result = run_beside(small_model(), {other.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("ranks 9, and rank 0 is "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("start all ranks from one version"), std::string::npos) << result.err;
}

// By another MPI's mpirun each process would be a job of its own.
TEST_F(Mpirun, another_mpis_ranks_are_refused) {
  const std::vector<std::string> run = {"run", "-m", small_model(), "--raw", "-n", "3", "hello"};
  const std::string session = "TMPDIR=" + folder_.path().string();  // which nobody's mpirun clears
  const RunResult first = testing::run_candor(run, {.environment = {"PMI_RANK=0", "PMI_SIZE=2", session}});
  EXPECT_EQ(first.exit_code, 2);
  EXPECT_EQ(testing::count_lines(first.err), 1) << first.err;
  EXPECT_NE(first.err.find("started as rank 0 of 2, and MPI calls it rank 0 of 1"), std::string::npos) << first.err;
  const RunResult second = testing::run_candor(run, {.environment = {"PMI_RANK=1", "PMI_SIZE=2", session}});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_EQ(second.out + second.err, "");
}

// As the first rank of another host, whose MPI is no library.
TEST_F(Mpirun, a_rank_whose_mpi_does_not_open_says_so_itself) {
  std::ofstream(folder_.path() / "libmpi.so.40") << "nothing";
  const RunResult result =
      run_beside(small_model(), {"env", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                                 "LD_LIBRARY_PATH=" + folder_.path().string(), CANDOR_PROGRAM});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("candor: rank 1 (host "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("apt install openmpi-bin"), std::string::npos) << result.err;
}

TEST_F(Mpirun, eval_compares_no_two_models) {
  const std::string model = small_model();
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--against", model}, {"--against-backend", "cpu"}, {"--fast-weights"}}) {
    std::vector<std::string> program = {CANDOR_PROGRAM, "eval", "-m", model, "hello hello"};
    program.insert(program.end(), option.begin(), option.end());
    const RunResult result = run_under_mpi(2, program);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("candor: " + option.front() + ": eval compares two models"), std::string::npos)
        << result.err;
  }
}

// Hosts with the same path and another file, or none.
TEST_F(Mpirun, a_rank_with_another_model_or_none_says_so) {
  const auto folder_of = [&](const char* name) {
    std::filesystem::create_directories(folder_.path() / name);
    return (folder_.path() / name).string();
  };
  const std::string first = folder_of("first"), other = folder_of("other"), none = folder_of("none");
  std::filesystem::copy_file(small_model(), first + "/m.gguf");
  std::filesystem::copy_file(small_model(8), other + "/m.gguf");
  const auto said = [&](const std::string& folder) {
    const std::vector<std::string> run = {CANDOR_PROGRAM, "run", "-m", "m.gguf", "--raw", "-n", "3", "hello"};
    std::vector<std::string> program = {"-wdir", first};
    program.insert(program.end(), run.begin(), run.end());
    program.insert(program.end(), {":", "-n", "1", "-wdir", folder});
    program.insert(program.end(), run.begin(), run.end());
    const RunResult result = run_under_mpi(1, program);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_NE(said(other).find("candor: rank 1: the model's file here has another content"), std::string::npos);
  const std::string missing = said(none);
  EXPECT_NE(missing.find("candor: rank 1: "), std::string::npos) << missing;
  EXPECT_NE(missing.find("m.gguf"), std::string::npos) << missing;
}

TEST_F(Mpirun, a_rank_that_never_comes_is_named) {
  const RunResult result =
      run_under_mpi(1, {CANDOR_PROGRAM, "run", "-m", small_model(), "hello", ":", "-n", "1", "sleep", "50"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("within 30 s: rank 1 is not on this host"), std::string::npos) << result.err;
}

// The server's own process among mpirun's children, and another one.
struct Pair {
  pid_t first = 0;
  pid_t second = 0;
};

class MpirunServer : public Mpirun {
 protected:
  std::future<RunResult> serve(const std::vector<std::string>& environment,
                               const std::vector<std::string>& options = kManyRanks) {
    const std::string model = small_model();
    port_ = testing::free_port();
    std::vector<std::string> program = {"-q",     CANDOR_PROGRAM,       "serve", "-m", model, "-t", "1", "--no-ui",
                                        "--port", std::to_string(port_)};
    auto result =
        std::async(std::launch::async, [=] { return run_under_mpi(2, program, environment, options); });
    EXPECT_TRUE(becomes_true([&] { return testing::get(port_, "/health").find("200 OK") != std::string::npos; }));
    const pid_t mpirun = children_of(::getpid()).at(0);
    for (const pid_t rank : children_of(mpirun)) {
      (testing::environment_of(rank).contains("OMPI_COMM_WORLD_RANK=0") ? ranks_.first : ranks_.second) = rank;
    }
    return result;
  }
  // Every client is told, nothing hangs, and the process ends with a code of its own.
  void expect_noticed(const std::vector<std::string>& environment, int signal) {
    auto result = serve(environment);
    std::vector<std::future<std::string>> answers;
    for (int i = 0; i < 3; ++i) {
      answers.push_back(std::async(std::launch::async, [port = port_] { return testing::complete(port); }));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(ranks_.second, signal);
    for (auto& answer : answers) {
      const std::string text = answer.get();
      const bool is_told = text.find("has ended") != std::string::npos ||
                           text.find("has not answered") != std::string::npos ||
                           text.find("mpirun ends the ranks") != std::string::npos;
      EXPECT_TRUE(is_told) << text.substr(text.size() - std::min<size_t>(text.size(), 400));
    }
    const RunResult ended = result.get();
    // mpirun's code is that of the process that ended first, as a shell says it.
    EXPECT_EQ(ended.exit_code, signal == SIGKILL ? 128 + SIGKILL : 3);
    EXPECT_NE(ended.err.find("candor: "), std::string::npos) << ended.err;
    EXPECT_EQ(testing::get(port_, "/health"), "");
  }

  uint16_t port_ = 0;
  Pair ranks_;
};

TEST_F(MpirunServer, tells_every_client_when_a_rank_of_this_host_ends) { expect_noticed({}, SIGKILL); }
TEST_F(MpirunServer, tells_every_client_when_a_rank_of_another_host_ends) { expect_noticed({kByMpiAlone}, SIGKILL); }
TEST_F(MpirunServer, tells_every_client_when_a_rank_of_another_host_says_nothing_more) {
  expect_noticed({kByMpiAlone}, SIGSTOP);
}

std::string processors_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Cpus_allowed_list:")) return line;
  }
  return "";
}

TEST_F(MpirunServer, has_all_processors_where_mpirun_binds_each_rank_to_one_unasked) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "mpirun binds where each rank has a processor";
  auto result = serve({}, kEachItsCore);
  EXPECT_TRUE(testing::environment_of(ranks_.first).contains("OMPI_MCA_orte_bound_at_launch=1"));
  EXPECT_EQ(processors_of(ranks_.first), processors_of(::getpid()));
  EXPECT_EQ(processors_of(ranks_.second), processors_of(::getpid()));
  ::kill(children_of(::getpid()).at(0), SIGINT);
  result.get();
}

TEST_F(MpirunServer, ends_in_order_when_mpirun_is_told_to) {
  auto result = serve({kByMpiAlone});
  ::kill(children_of(::getpid()).at(0), SIGINT);
  result.get();
  EXPECT_TRUE(becomes_true([&] { return ::kill(ranks_.first, 0) != 0 && ::kill(ranks_.second, 0) != 0; }));
}

}  // namespace
}  // namespace candor
