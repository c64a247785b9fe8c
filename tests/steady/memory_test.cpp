// Memory that runs out at every single place in turn: while a request is read, and on the engine thread while it is
// served. Each request ends, in an answer or in an error that names memory, and the next one gets its answer bit for
// bit.

#include <atomic>
#include <future>

#include "counting_new.h"
#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;
using testing::token_prompt;

class Memory : public testing::TinyModelTest {
 protected:
  Memory() : options_(testing::options_for(tiny_path(tiny_options()))) {
    options_.n_ctx = 96;
    options_.costs = StepCosts{.points = {{1, 1.0}, {64, 4.0}}, .attend_ns = 0};
  }
  Engine& engine() {
    if (!engine_) engine_ = testing::open_or_fail(options_);
    return *engine_;
  }
  static Request plain(uint64_t seed) {
    Request request = sampled(token_prompt(40, 320, seed), 6, seed);
    request.sampling.ignore_eos = true;
    return request;
  }
  static std::vector<Request> requests() {
    std::vector<Request> requests = {plain(1), plain(2), plain(3), plain(4), plain(5), plain(6)};
    requests[1].n = 3;
    requests[2].constraint = {GrammarKind::kRegex, "[a-z ]{1,60}"};
    requests[2].n = 2;
    requests[3].sampling.temperature = 0.0;
    requests[3].beams = BeamSearch{.width = 3};
    requests[3].constraint = requests[2].constraint;
    requests[4].sampling.explain = true;
    requests[4].sampling.prompt_logprobs = 2;
    requests[4].sampling.stop = {"never", "and ever"};
    requests[5].prompt = TokenPrompt{1, 40, 41, 42, 40, 41, 42, 40, 41};
    requests[5].sampling.frequency_penalty = 0.5;
    requests[5].sampling.repetition_penalty = 1.1;
    requests[5].sampling.dry_multiplier = 0.8;
    requests[5].sampling.typical_p = 0.9;
    return requests;
  }
  // Submits, while one of this thread's allocations fails; the last event, or the refusal.
  Result<TokenEvent> end_of(const Request& request, int64_t n_good = INT64_MAX) {
    std::promise<TokenEvent> end;
    Engine& here = engine();
    testing::fail_allocations(n_good, 1);
    const auto id = here.submit(request, [&end](const TokenEvent& event) {
      if (!event.summary) return;
      TokenEvent last;
      last.finish = event.finish;
      last.summary.emplace();
      if (event.error) last.error = Error{event.error->kind, {}, {}};
      end.set_value(last);
    });
    n_failed_ = testing::stop_failing();
    if (!id) return id.error();
    return end.get_future().get();
  }
  // Runs on the engine thread.
  template <class Body>
  void on_engine_thread(Body body) {
    std::promise<void> done;
    const auto id = engine().submit(plain(7), [&](const TokenEvent& event) {
      if (!event.summary) return;
      body();
      done.set_value();
    });
    EXPECT_TRUE(id.has_value());
    done.get_future().wait();
  }
  static void expect_fault_is_of_memory(const Result<TokenEvent>& end, const std::string& what) {
    if (!end) {
      EXPECT_EQ(end.error().kind, ErrorKind::kOutOfMemory) << what << ": " << end.error().message;
    } else if (end->error) {
      EXPECT_EQ(end->error->kind, ErrorKind::kOutOfMemory) << what;
    }
  }

  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
  int64_t n_failed_ = 0;  // allocations, in end_of()
};

TEST_F(Memory, that_runs_out_while_a_request_is_read_is_its_error_alone) {
  const Completion expected = complete(engine(), plain(6));
  for (const Request& request : requests()) {
    for (int64_t n_good = 0;; ++n_good) {
      const auto end = end_of(request, n_good);
      if (n_failed_ == 0) break;
      expect_fault_is_of_memory(end, "allocation " + std::to_string(n_good));
      ASSERT_LT(n_good, 5000);
    }
    testing::expect_same(complete(engine(), plain(6)), expected, "afterwards");
  }
  EXPECT_EQ(engine().stats().kv_blocks_used, 0);
  EXPECT_EQ(engine().stats().n_submitted, engine().stats().n_finished);
}

TEST_F(Memory, that_runs_out_on_the_engine_thread_ends_what_it_was_for_and_the_engine_goes_on) {
  options_.speculation = Speculation::kNgram;
  std::vector<Completion> expected;
  for (const Request& request : requests()) expected.push_back(complete(engine(), request));
  const auto all = requests();
  int64_t n_errors = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    for (const int64_t n_bad : {1, 3, 1000}) {
      for (int64_t n_good = 0;; n_good += n_bad == 1 ? 1 : 7) {
        engine_.reset();  // so that nothing was allocated before
        on_engine_thread([&] { testing::fail_allocations(n_good, n_bad); });
        const auto end = end_of(all[i]);
        const std::string what = "request " + std::to_string(i) + ", allocation " + std::to_string(n_good);
        expect_fault_is_of_memory(end, what);
        n_errors += end && !end->error ? 0 : 1;
        int64_t n_failed = 0;
        on_engine_thread([&] { n_failed = testing::stop_failing(); });
        if (n_failed == 0) break;
        testing::expect_same(complete(engine(), all[i]), expected[i], what);
        EXPECT_EQ(engine().stats().kv_blocks_used, 0) << what;
        EXPECT_EQ(engine().stats().n_submitted, engine().stats().n_finished) << what;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(n_errors, 50);
}

}  // namespace
}  // namespace candor
