// Counts operator new on the engine thread: once a crowd has passed through, the same crowd again takes no memory.

#include <algorithm>
#include <atomic>
#include <thread>

#include "counting_new.h"
#include "engine_fixture.h"

namespace candor {
namespace {

using testing::sampled;
using testing::token_prompt;

class Allocation : public testing::TinyModelTest {
 protected:
  Allocation() : options_(testing::options_for(tiny_path(tiny_options()))) {
    options_.n_ctx = 128;
    options_.costs = StepCosts{.points = {{1, 1.0}, {64, 9.0}}, .attend_ns = 10};
  }

  // Allocations of the engine thread from one step's report to the next, over all steps of one crowd.
  int64_t count(Engine& engine, const std::vector<Request>& requests) {
    int64_t total = 0;
    int64_t before = -1;
    engine.on_step([&](const StepReport&) {
      if (before >= 0) total += testing::n_allocations() - before;
      before = testing::n_allocations();
    });
    std::atomic<size_t> n_open = requests.size();
    for (const Request& request : requests) {
      const auto id = engine.submit(request, [&n_open](const TokenEvent& event) {
        if (event.summary) --n_open;
      });
      EXPECT_TRUE(id.has_value());
    }
    while (n_open > 0) std::this_thread::yield();
    engine.on_step({});
    return total;
  }

  // When requests arrive during a step is up to the machine: a round may be the first that has so many at once.
  int64_t least_of_rounds(Engine& engine) {
    const auto requests = crowd(engine.info().n_vocab);
    int64_t least = count(engine, requests);
    for (int round = 1; round < 12 && least > 0; ++round) least = std::min(least, count(engine, requests));
    return least;
  }

  static std::vector<Request> crowd(int32_t n_vocab) {
    std::vector<Request> requests;
    for (uint64_t i = 0; i < 12; ++i) {
      requests.push_back(sampled(token_prompt(static_cast<int32_t>(5 + 9 * i), n_vocab, i), 16, i));
      requests.back().sampling.ignore_eos = true;
    }
    return requests;
  }

  EngineOptions options_;
};

TEST_F(Allocation, a_step_takes_no_memory_once_a_crowd_has_passed_through) {
  const auto engine = testing::open_or_fail(options_);
  EXPECT_EQ(least_of_rounds(*engine), 0);
}

TEST_F(Allocation, a_step_that_preempts_takes_none_either) {
  options_.kv_blocks = 6;
  options_.prefix_cache = false;
  const auto engine = testing::open_or_fail(options_);
  EXPECT_EQ(least_of_rounds(*engine), 0);
}

TEST_F(Allocation, a_step_that_saves_finds_and_evicts_recurrent_states_takes_none_either) {
  options_.model_path = testing::goldens() / "qwen3_5_text/model.gguf";
  for (const int32_t kv_blocks : {64, 6}) {
    options_.kv_blocks = kv_blocks;
    options_.kept_states = kv_blocks / 6;
    const auto engine = testing::open_or_fail(options_);
    EXPECT_EQ(least_of_rounds(*engine), 0);
    EXPECT_GT(engine->stats().checkpoints, 0);
  }
}

TEST_F(Allocation, the_count_sees_what_a_callback_allocates) {
  const auto engine = testing::open_or_fail(options_);
  std::vector<std::unique_ptr<int>> kept;
  int64_t first = -1;
  int64_t last = 0;
  engine->on_step([&](const StepReport&) {
    if (first < 0) first = testing::n_allocations();
    kept.push_back(std::make_unique<int>(1));
    last = testing::n_allocations();
  });
  testing::complete(*engine, crowd(engine->info().n_vocab)[0]);
  engine->on_step({});
  EXPECT_GE(last - first, static_cast<int64_t>(kept.size()));
}

}  // namespace
}  // namespace candor
