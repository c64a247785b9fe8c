// The pool fills and empties again and again, with random short requests and random cancels: in the end no block is
// held and memory is what it was. The number of rounds can be raised from outside (scripts/soak.sh).

#include <atomic>
#include <cstdlib>
#include <thread>

#include "engine_fixture.h"
#include "support/resident_memory.h"

namespace candor {
namespace {

#ifdef CANDOR_SANITIZED
constexpr int kRounds = 15;
#else
constexpr int kRounds = 150;
#endif

int n_rounds() {
  const char* text = std::getenv("CANDOR_SOAK_ROUNDS");
  return text == nullptr ? kRounds : std::max(1, std::atoi(text));
}

class Soak : public testing::TinyModelTest {
 protected:
  void open(const std::filesystem::path& path) {
    EngineOptions options = testing::options_for(path);
    options.n_ctx = 128;
    options.kv_blocks = 10;
    options.max_running = 8;
    options.max_queued = 32;
    options.costs = StepCosts{.points = {{1, 1.0}, {64, 9.0}}, .attend_ns = 10};
    engine_ = testing::open_or_fail(options);
  }

  Request random_request() {
    const auto n_prompt = static_cast<int32_t>(1 + random_.below(60));
    Request request = testing::sampled(token_prompt_(n_prompt), static_cast<int64_t>(1 + random_.below(24)), 1);
    request.n = random_.below(6) == 0 ? 3 : 1;
    request.scheduling.priority = static_cast<int32_t>(random_.below(3));
    request.scheduling.fair_key = std::string(1, static_cast<char>('a' + random_.below(4)));
    if (random_.below(8) == 0) request.on_context_full = OnContextFull::kCrop;
    if (random_.below(10) == 0) request.scheduling.deadline_ms = 2;
    return request;
  }
  TokenPrompt token_prompt_(int32_t n) {
    return testing::token_prompt(n, engine_->info().n_vocab, random_.below(5));
  }

  // As many as come in until a few in a row are refused or enough are there; some are cancelled on the way.
  void fill_and_empty() {
    std::vector<RequestId> ids;
    const auto n = 4 + random_.below(12);
    for (uint64_t i = 0; i < n; ++i) {
      const auto id = engine_->submit(random_request(), [this](const TokenEvent& event) {
        if (event.summary) --n_open_;
      });
      if (!id) {
        EXPECT_EQ(id.error().kind, ErrorKind::kOverloaded) << id.error().message;
        continue;
      }
      ++n_open_;
      ids.push_back(*id);
      if (random_.below(4) == 0) static_cast<void>(engine_->cancel(ids[random_.below(ids.size())]));
    }
    while (n_open_ > 0) {
      if (random_.below(50) == 0) static_cast<void>(engine_->cancel(ids[random_.below(ids.size())]));
      std::this_thread::yield();
    }
  }

  void fill_and_empty_often() {
    const int n = n_rounds();
    for (int i = 0; i < n / 5; ++i) fill_and_empty();
    const int64_t before = testing::resident_bytes();
    for (int i = n / 5; i < n; ++i) fill_and_empty();
    const int64_t grown = testing::resident_bytes() - before;
    testing::complete(*engine_, testing::greedy(TokenPrompt{1}, 1));
    const EngineStats stats = engine_->stats();
    EXPECT_EQ(stats.kv_blocks_used, 0);
    EXPECT_EQ(stats.state_slots_used, 0);
    EXPECT_EQ(stats.n_running + stats.n_waiting, 0);
    EXPECT_EQ(stats.n_submitted, stats.n_finished);
    EXPECT_LE(grown, int64_t{4} << 20) << "resident memory grew by so many bytes over " << n << " rounds";
    std::printf("%d rounds, %ld requests, %ld preemptions, %ld cached tokens, resident memory %+ld bytes\n", n,
                static_cast<long>(stats.n_submitted), static_cast<long>(stats.n_preemptions),
                static_cast<long>(stats.cached_tokens), static_cast<long>(grown));
  }

  testing::SplitMix random_{11};
  std::unique_ptr<Engine> engine_;
  std::atomic<int> n_open_ = 0;
};

TEST_F(Soak, filling_and_emptying_the_pool_leaves_no_block_and_no_memory_behind) {
  open(tiny_path(tiny_options()));
  fill_and_empty_often();
}

TEST_F(Soak, filling_and_emptying_the_slots_of_recurrent_states_leaves_none_in_use) {
  open(testing::goldens() / "qwen3_5_text/model.gguf");
  fill_and_empty_often();
  EXPECT_GT(engine_->stats().cached_tokens, 0);
  EXPECT_LE(engine_->stats().checkpoints, engine_->stats().kv_blocks_cached);
}

}  // namespace
}  // namespace candor
