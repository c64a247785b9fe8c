// Ranks as the processes that the candor command starts: the same answers, and what happens when one of them goes.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "candor/engine.h"
#include "cli/program.h"
#include "engine/open/rank_plans.h"
#include "engine_fixture.h"
#include "processes.h"

namespace candor {
namespace {

using std::chrono::milliseconds;
using testing::becomes_true;
using testing::children_of;
using testing::kPatience;
using testing::run_candor;

class RankProcesses : public testing::TinyModelTest {
 protected:
  EngineOptions rank_options(int32_t n_ranks) {
    testing::TinyModelOptions model = testing::tiny_model_of(DType::kQ4_K, 64, 256);
    model.context_tokens = 4096;
    EngineOptions options = testing::options_for(tiny_path(model));
    options.n_ranks = n_ranks;
    options.rank_program = CANDOR_PROGRAM;
    options.costs = StepCosts{.points = {{1, 0.0}}, .attend_ns = 0};
    return options;
  }
  static Request long_request(uint64_t seed) {
    Request request = testing::sampled(testing::token_prompt(5, 384, seed), 4000, seed);
    request.sampling.ignore_eos = true;
    return request;
  }

  // Does something to rank 1 while three requests are computed, and expects that each ends with an error that says so.
  void expect_noticed(const std::function<void(pid_t)>& harm, const std::string& words) {
    auto opened = Engine::open(rank_options(2));
    ASSERT_TRUE(opened) << opened.error().message;
    Engine& engine = **opened;
    const std::vector<pid_t> ranks = children_of(::getpid());
    ASSERT_EQ(ranks.size(), 1u);
    std::atomic<int> n_tokens = 0;
    std::vector<std::future<Result<Completion>>> answers;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      answers.push_back(std::async(std::launch::async, [&engine, &n_tokens, seed] {
        return engine.generate(long_request(seed), [&](const TokenEvent&) { ++n_tokens; });
      }));
    }
    ASSERT_TRUE(becomes_true([&] { return n_tokens > 10; }));
    EXPECT_TRUE(engine.health());
    harm(ranks[0]);
    for (auto& answer : answers) {
      ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
      const auto result = answer.get();
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().field, "ranks");
      EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
    }
    EXPECT_FALSE(engine.health());
    const auto later = engine.generate(long_request(9));
    ASSERT_FALSE(later);
    EXPECT_EQ(later.error().field, "ranks");
    opened->reset();
    EXPECT_TRUE(children_of(::getpid()).empty());
  }
};

TEST_F(RankProcesses, give_one_ranks_answers) {
  for (const int32_t n_ranks : {2, 3}) {
    EngineOptions options = rank_options(n_ranks);
    options.speculation = Speculation::kNgram;
    const auto several = testing::open_or_fail(options);
    ASSERT_NE(several, nullptr);
    EXPECT_EQ(children_of(::getpid()).size(), static_cast<size_t>(n_ranks - 1));
    options.n_ranks = 1;
    const auto one = testing::open_or_fail(options);
    std::vector<Request> requests;
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      requests.push_back(testing::sampled(testing::token_prompt(40, 384, seed), 20, seed));
    }
    const auto expected = testing::Crowd(*one).run(requests);
    const auto found = testing::Crowd(*several).run(requests);
    for (size_t i = 0; i < requests.size(); ++i) testing::expect_same(found[i], expected[i], std::to_string(n_ranks));
  }
  EXPECT_TRUE(children_of(::getpid()).empty());
}

TEST_F(RankProcesses, one_that_is_killed_ends_every_request_with_an_error_that_says_so) {
  expect_noticed([](pid_t rank) { ::kill(rank, SIGKILL); }, "has ended");
}

TEST_F(RankProcesses, one_that_is_stopped_ends_every_request_with_an_error_that_says_so) {
  expect_noticed([](pid_t rank) { ::kill(rank, SIGSTOP); }, "has not answered");
}

TEST_F(RankProcesses, one_that_ends_while_nothing_is_computed_is_noticed) {
  const auto engine = testing::open_or_fail(rank_options(2));
  ASSERT_NE(engine, nullptr);
  ::kill(children_of(::getpid()).at(0), SIGKILL);
  EXPECT_TRUE(becomes_true([&] { return !engine->health(); }));
}

TEST_F(RankProcesses, plans_start_none) {
  const auto plan = Engine::plan(rank_options(2));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(children_of(::getpid()).empty());
}

TEST_F(RankProcesses, a_plan_counts_what_all_ranks_of_the_computer_need) {
  const auto all = Engine::plan(rank_options(2));
  ASSERT_TRUE(all) << all.error().message;
  const auto each = engine::plan_ranks(rank_options(2), *all);
  ASSERT_TRUE(each) << each.error().message;
  ASSERT_EQ(each->size(), 2u);
  EXPECT_EQ(all->weight_bytes, (*each)[0].weight_bytes + (*each)[1].weight_bytes);
  EXPECT_EQ(all->kv_bytes, (*each)[0].kv_bytes + (*each)[1].kv_bytes);
  EXPECT_EQ(all->scratch_bytes, (*each)[0].scratch_bytes + (*each)[1].scratch_bytes);
}

TEST_F(RankProcesses, what_cannot_be_started_is_one_line) {
  EngineOptions options = rank_options(2);
  options.rank_program = "/nonexistent/candor";
  auto engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("/nonexistent/candor"), std::string::npos) << engine.error().message;
  options.rank_program = "/bin/true";
  engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().field, "ranks");
  EXPECT_NE(engine.error().message.find("rank 1"), std::string::npos) << engine.error().message;
  options.rank_program.clear();
  engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("rank_program"), std::string::npos) << engine.error().message;
}

TEST_F(RankProcesses, end_with_the_one_that_started_them) {
  const std::string path = rank_options(2).model_path.string();
  const pid_t first = ::fork();
  if (first == 0) {
    ::execl(CANDOR_PROGRAM, "candor", "run", "-m", path.c_str(), "--ranks", "2", "--raw", "--ignore-eos", "-t", "1",
            "hello", nullptr);
    ::_exit(1);
  }
  std::vector<pid_t> ranks;
  ASSERT_TRUE(becomes_true([&] { return ranks = children_of(first), !ranks.empty(); }));
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
  EXPECT_TRUE(becomes_true([&] { return ::kill(ranks[0], 0) != 0; }));
}

TEST_F(RankProcesses, the_command_says_what_is_wrong_in_one_line) {
  const std::string path = rank_options(2).model_path.string();
  const auto too_many = run_candor({"run", "-m", path, "--ranks", "9", "hello"});
  EXPECT_EQ(too_many.exit_code, 2);
  EXPECT_EQ(testing::count_lines(too_many.err), 1) << too_many.err;
  EXPECT_NE(too_many.err.find("can use 4"), std::string::npos) << too_many.err;
  EXPECT_EQ(run_candor({"run", "-m", path, "--ranks", "0", "hello"}).exit_code, 2);
  const auto lonely = run_candor({"rank", "0", "1"}, {.close_stdin = true});
  EXPECT_EQ(lonely.exit_code, 2);
  EXPECT_EQ(testing::count_lines(lonely.err), 1) << lonely.err;
}

TEST_F(RankProcesses, the_command_gives_one_ranks_answer) {
  const std::string path = rank_options(2).model_path.string();
  const std::vector<std::string> arguments = {"run", "-m", path, "--raw", "-s", "5", "-n", "20", "hello"};
  std::vector<std::string> ranked = arguments;
  ranked.insert(ranked.end(), {"--ranks", "2"});
  const auto one = run_candor(arguments);
  const auto two = run_candor(ranked);
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(one.out, two.out);
}

}  // namespace
}  // namespace candor
