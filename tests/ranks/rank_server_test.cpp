// A server whose model is computed by ranks: what its clients and its operator see when one is lost.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "cli/program.h"
#include "engine_fixture.h"
#include "processes.h"
#include "server_client.h"

namespace candor {
namespace {

using std::chrono::milliseconds;
using testing::becomes_true;
using testing::children_of;
using testing::complete;
using testing::free_port;
using testing::get;
using testing::run_candor;
using testing::RunResult;

class RankServer : public testing::TinyModelTest {
 protected:
  std::future<RunResult> serve(const std::vector<std::string>& more = {}) {
    testing::TinyModelOptions model = testing::tiny_model_of(DType::kQ4_K, 64, 256);
    model.context_tokens = 8192;
    port_ = free_port();
    std::vector<std::string> arguments = {"serve",   "-m",     tiny_path(model).string(), "--ranks", "2", "-t", "1",
                                          "--no-ui", "--port", std::to_string(port_)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto result = std::async(std::launch::async, [arguments] { return run_candor(arguments); });
    EXPECT_TRUE(becomes_true([&] { return get(port_, "/health").find("200 OK") != std::string::npos; }));
    return result;
  }
  static pid_t server() { return children_of(::getpid()).at(0); }

  uint16_t port_ = 0;
};

TEST_F(RankServer, ends_with_a_code_of_its_own_and_every_client_is_told) {
  auto result = serve();
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 3; ++i)
    answers.push_back(std::async(std::launch::async, [port = port_] { return complete(port); }));
  std::this_thread::sleep_for(milliseconds(300));
  ::kill(children_of(server()).at(0), SIGKILL);
  for (auto& answer : answers) EXPECT_NE(answer.get().find("has ended"), std::string::npos);
  const RunResult ended = result.get();
  EXPECT_EQ(ended.exit_code, 3) << ended.err;
  EXPECT_NE(ended.err.find("rank 1"), std::string::npos) << ended.err;
  EXPECT_EQ(get(port_, "/health"), "");
}

TEST_F(RankServer, starts_its_ranks_again_where_that_is_asked_for) {
  auto result = serve({"--restart"});
  const pid_t rank = children_of(server()).at(0);
  ::kill(rank, SIGKILL);
  EXPECT_TRUE(becomes_true([&] {
    const auto ranks = children_of(server());
    return !ranks.empty() && ranks[0] != rank && get(port_, "/health").find("200 OK") != std::string::npos;
  }));
  ::kill(server(), SIGTERM);
  EXPECT_EQ(result.get().exit_code, 0);
}

}  // namespace
}  // namespace candor
