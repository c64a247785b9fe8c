// The numerics contract as its users would check it: every answer is computed under many conditions that must not
// matter, and compared with the one computed alone, tokens and logprobs bit for bit. A backend that breaks one rule on
// purpose must be caught, else the comparison proves nothing.

#include <algorithm>
#include <functional>

#include "backend/cpu/test_faults.h"
#include "engine/engine_impl.h"
#include "engine_fixture.h"
#include "tensor/dtype.h"

namespace candor {
namespace {

using testing::complete;
using testing::Crowd;
using testing::sampled;
using testing::token_prompt;

#ifdef CANDOR_SANITIZED
constexpr int64_t kNewTokens = 6;
const std::vector<int32_t> kPromptTokens = {3, 33, 70};
#else
constexpr int64_t kNewTokens = 16;
const std::vector<int32_t> kPromptTokens = {3, 12, 31, 32, 33, 64, 90, 120, 200};
#endif
constexpr int32_t kLongPrompt = 400;
// Requests that outgrow the blocks that were free when they were admitted.
constexpr int kGrowing = 6;
constexpr int64_t kGrowingTokens = 80;

// A condition that must not change an answer: how the engine is opened, how many requests share it, in which order.
struct Condition {
  std::string name;
  std::function<void(EngineOptions&)> change;
  size_t n_together = 1;
  bool is_shuffled = false;
};

// Rows that cost nothing, so that as much is guessed as can be.
void guess(EngineOptions& options) {
  options.speculation = Speculation::kNgram;
  options.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
}

std::vector<Condition> conditions() {
  return {
      {"alone again", [](EngineOptions&) {}},
      {"2 at once", [](EngineOptions& o) { o.max_running = 2; }, 2},
      {"7 at once", [](EngineOptions& o) { o.max_running = 7; }, 7},
      {"16 at once", [](EngineOptions&) {}, 16},
      {"16 at once, shuffled", [](EngineOptions&) {}, 16, true},
      {"chunks of 16", [](EngineOptions& o) { o.max_rows = 16; }},
      {"chunks of 64", [](EngineOptions& o) { o.max_rows = 64; }},
      {"chunks of 512", [](EngineOptions& o) { o.max_rows = 512; }},
      {"16 at once in chunks of 16", [](EngineOptions& o) { o.max_rows = 32, o.prefill_rows = 16; }, 16},
      {"2 threads", [](EngineOptions& o) { o.n_threads = 2; }},
      {"2 threads, 16 at once", [](EngineOptions& o) { o.n_threads = 2; }, 16},
      {"guesses", [](EngineOptions& o) { guess(o); }},
      {"guesses, 16 at once", [](EngineOptions& o) { guess(o); }, 16},
      {"prefix cache", [](EngineOptions& o) { o.prefix_cache = true; }, 16},
      {"chunks as the costs allow",
       [](EngineOptions& o) {
         o.costs = StepCosts{.points = {{1, 1.0}, {4, 1.2}, {64, 20.0}}, .attend_ns = 100};
       },
       16},
      {"steps of a given time",
       [](EngineOptions& o) {
         o.costs = StepCosts{.points = {{1, 1.0}, {64, 64.0}}, .attend_ns = 0};
         o.step_ms = 25;
       },
       7},
      {"a pool for one context", [](EngineOptions& o) { o.kv_blocks = 16; }, 16},
  };
}

// The answers to `requests` under one condition, in their order.
std::vector<Completion> answers(Engine& engine, const std::vector<Request>& requests, const Condition& condition) {
  std::vector<size_t> order(requests.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (condition.is_shuffled) std::reverse(order.begin(), order.end());
  std::vector<Completion> completions(requests.size());
  for (size_t begin = 0; begin < order.size(); begin += condition.n_together) {
    const size_t end = std::min(begin + condition.n_together, order.size());
    std::vector<Request> group;
    for (size_t i = begin; i < end; ++i) group.push_back(requests[order[i]]);
    auto together = Crowd(engine).run(group);
    for (size_t i = begin; i < end; ++i) completions[order[i]] = std::move(together[i - begin]);
  }
  return completions;
}

bool is_same(const Completion& a, const Completion& b) {
  return a.tokens == b.tokens && a.logprobs == b.logprobs && a.top_logprobs == b.top_logprobs;
}

class Invariance : public testing::TinyModelTest {
 protected:
  EngineOptions base_options(const std::filesystem::path& path) {
    EngineOptions options = testing::options_for(path);
    options.n_ctx = 512;
    options.kv_blocks = 16 * 16;
    options.prefix_cache = false;
    options.costs = StepCosts{.points = {{1, 0.0}}, .attend_ns = 0};
    return options;
  }

  // Greedy and sampled, short and long, with and without shared beginnings.
  std::vector<Request> make_requests(int32_t n_vocab) {
    std::vector<Request> requests;
    uint64_t seed = 1;
    for (const int32_t n : kPromptTokens) {
      requests.push_back(sampled(token_prompt(n, n_vocab, 7), kNewTokens, seed));
      requests.push_back(sampled(token_prompt(n, n_vocab, seed), kNewTokens, seed));
      requests.back().sampling.temperature = 0.0;
      ++seed;
    }
    requests.push_back(sampled(token_prompt(kLongPrompt, n_vocab, 7), kNewTokens, seed));
    for (int i = 0; i < kGrowing; ++i) {
      ++seed;
      requests.push_back(sampled(token_prompt(30, n_vocab, seed), kGrowingTokens, seed));
    }
    for (Request& request : requests) request.sampling.ignore_eos = true;
    return requests;
  }

  struct Counts {
    int n_compared = 0;
    int n_different = 0;
    int64_t n_preempted = 0;
    int64_t n_cached = 0;
  };

  Counts compare(const std::filesystem::path& path, const engine::BackendFactory& backend,
                 const std::vector<Condition>& under = conditions()) {
    Counts counts;
    const auto open = [&](const EngineOptions& options) {
      auto engine = engine::open_with_backend(options, backend);
      EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
      return engine ? std::move(*engine) : nullptr;
    };
    const auto alone = open(base_options(path));
    if (alone == nullptr) return counts;
    const auto requests = make_requests(alone->info().n_vocab);
    const auto expected = answers(*alone, requests, {"alone", {}});
    for (const Condition& condition : under) {
      EngineOptions options = base_options(path);
      condition.change(options);
      const auto engine = open(options);
      if (engine == nullptr) return counts;
      const auto found = answers(*engine, requests, condition);
      for (size_t i = 0; i < requests.size(); ++i) {
        ++counts.n_compared;
        if (is_same(found[i], expected[i])) continue;
        ++counts.n_different;
        last_difference_ = condition.name + ", request " + std::to_string(i);
      }
      counts.n_preempted += engine->stats().n_preemptions;
      counts.n_cached += engine->stats().cached_tokens;
    }
    return counts;
  }

  std::string last_difference_;
};

engine::BackendFactory faulty_backend(backend::cpu::Fault fault) {
  return [fault](const EngineOptions& options) {
    return backend::cpu::make_faulty_cpu_backend({.n_threads = options.n_threads, .isa = {}}, fault);
  };
}

class InvarianceOf : public Invariance, public ::testing::WithParamInterface<DType> {};

TEST_P(InvarianceOf, every_answer_is_the_one_given_alone) {
  testing::TinyModelOptions model = testing::tiny_model_of(GetParam(), 64, 256);
  model.context_tokens = 512;
  const Counts counts = compare(tiny_path(model), engine::make_named_backend);
  EXPECT_EQ(counts.n_different, 0) << "of " << counts.n_compared << "; the last: " << last_difference_;
  EXPECT_GE(counts.n_compared, 70);
  EXPECT_GT(counts.n_preempted, 0);
  EXPECT_GT(counts.n_cached, 0);
  RecordProperty("compared", counts.n_compared);
}

std::string dtype_name(const ::testing::TestParamInfo<DType>& info) {
  return std::string(dtype_info(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(weights, InvarianceOf,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                                           DType::kQ4_K, DType::kQ6_K, DType::kMXFP4),
                         dtype_name);

TEST_F(Invariance, a_backend_that_splits_attention_by_threads_or_rows_is_caught) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kF32, 64, 256));
  const std::vector<Condition> under = {{"2 threads, 16 at once", [](EngineOptions& o) { o.n_threads = 2; }, 16}};
  for (const auto fault : {backend::cpu::Fault::kSplitKeysByThreads, backend::cpu::Fault::kSplitKeysByRows}) {
    const Counts counts = compare(path, faulty_backend(fault), under);
    EXPECT_GT(counts.n_different, 0) << "of " << counts.n_compared;
  }
  EXPECT_EQ(compare(path, faulty_backend(backend::cpu::Fault::kNone), under).n_different, 0);
}

TEST_F(Invariance, the_trained_model_gives_every_answer_alone_and_in_company) {
  CANDOR_REQUIRE_DATA(testing::stories_path());
  const Counts counts = compare(testing::stories_path(), engine::make_named_backend);
  EXPECT_EQ(counts.n_different, 0) << "of " << counts.n_compared << "; the last: " << last_difference_;
}

}  // namespace
}  // namespace candor
