// One answer: requests with different adapters give the same tokens and logprobs alone and in one batch, cold and from
// the prefix cache, in chunks, with drafts, with any number of threads, by any kernel table, and over ranks.

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "adapters/golden.h"
#include "candor/engine.h"
#include "engine/engine_impl.h"
#include "kernels/kernels.h"
#include "support/thread_ranks.h"

namespace candor::testing {
namespace {

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  bool operator==(const Answer&) const = default;
};

struct AdapterCase {
  std::string base;
  std::vector<std::string> adapters;
};

const std::vector<AdapterCase>& adapter_cases() {
  static const std::vector<AdapterCase> cases = {
      {"llama", {"llama_all", "llama_patterns", "llama_dora", "llama_saved", "llama_embedding"}},
      {"qwen2", {"qwen2_dora"}},
      {"phi3", {"phi3"}},
      {"mixtral", {"mixtral"}},
      {"gpt_oss", {"gpt_oss"}},
      {"qwen3_next", {"qwen3_next"}},
      {"deepseek_v3", {"deepseek_v3"}},
      {"nemotron_h", {"nemotron_h"}}};
  return cases;
}

EngineOptions options_of(const AdapterCase& of, int32_t n_threads = 1) {
  EngineOptions options;
  options.model_path = model_path(of.base);
  options.n_threads = n_threads;
  options.n_ctx = 128;
  options.max_running = 16;
  for (const std::string& name : of.adapters) options.adapters.push_back({name, adapter_path(name), 1.0});
  return options;
}

// Beginnings that many share; adapters one by one, two at once, at other scales, and none.
std::vector<Request> made_requests(const AdapterCase& of) {
  std::mt19937 random(11);
  std::vector<Request> requests;
  for (int i = 0; i < 28; ++i) {
    TokenPrompt prompt;
    const auto length = 3 + random() % 60;
    for (TokenId at = 0; at < static_cast<TokenId>(length); ++at) prompt.push_back((7 * at * at + 3 * at + 1) % 250);
    Request request;
    request.prompt = prompt;
    request.sampling.temperature = i % 3 == 0 ? 0.8 : 0.0;
    request.sampling.seed = 40 + static_cast<uint64_t>(i);
    request.sampling.max_tokens = 12;
    request.sampling.ignore_eos = true;
    request.sampling.logprobs = 0;
    const size_t first = random() % (of.adapters.size() + 1);
    if (first < of.adapters.size()) request.adapters.push_back({of.adapters[first], i % 4 == 0 ? 0.5 : 1.0});
    if (first > 0 && first < of.adapters.size() && i % 2 == 0)
      request.adapters.push_back({of.adapters[first - 1], 0.75});
    requests.push_back(request);
  }
  return requests;
}

// All at once.
std::vector<Answer> answers_together(Engine& engine, const std::vector<Request>& requests) {
  std::vector<Answer> answers(requests.size());
  std::vector<std::promise<void>> ends(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto id = engine.submit(requests[i], [&, i](const TokenEvent& event) {
      if (event.error) ADD_FAILURE() << event.error->message;
      if (event.token >= 0) answers[i].tokens.push_back(event.token);
      if (event.logprob) answers[i].logprobs.push_back(static_cast<float>(event.logprob->logprob));
      if (event.summary) ends[i].set_value();
    });
    if (id) continue;
    ADD_FAILURE() << id.error().message;
    ends[i].set_value();
  }
  for (auto& end : ends) end.get_future().get();
  return answers;
}

std::vector<Answer> answers_one_by_one(Engine& engine, const std::vector<Request>& requests) {
  std::vector<Answer> answers;
  for (const Request& request : requests) answers.push_back(answers_together(engine, {request}).front());
  return answers;
}

std::unique_ptr<Engine> opened(const EngineOptions& options) {
  auto engine = Engine::open(options);
  if (engine) return std::move(*engine);
  ADD_FAILURE() << engine.error().message;
  return nullptr;
}

class AdapterInvariance : public ::testing::TestWithParam<AdapterCase> {
 protected:
  void SetUp() override {
    EngineOptions options = options_of(GetParam());
    options.prefix_cache = false;
    const auto engine = opened(options);
    ASSERT_NE(engine, nullptr);
    alone_ = answers_one_by_one(*engine, requests_);
  }
  void expect_same(const EngineOptions& options, const std::string& how) {
    const auto engine = opened(options);
    ASSERT_NE(engine, nullptr) << how;
    EXPECT_EQ(answers_together(*engine, requests_), alone_) << how;
    EXPECT_EQ(answers_one_by_one(*engine, requests_), alone_) << how << ", from the cache";
  }
  const std::vector<Request> requests_ = made_requests(GetParam());
  std::vector<Answer> alone_;
};

TEST_P(AdapterInvariance, together_from_the_cache_and_with_more_threads) {
  for (const int32_t n_threads : {1, 2, 3}) expect_same(options_of(GetParam(), n_threads), std::to_string(n_threads));
}

TEST_P(AdapterInvariance, in_small_chunks_and_with_drafts) {
  EngineOptions options = options_of(GetParam());
  options.max_rows = 19;
  expect_same(options, "chunks");
  options = options_of(GetParam());
  options.speculation = Speculation::kNgram;
  expect_same(options, "drafts");
}

TEST_P(AdapterInvariance, by_every_kernel_table) {
  for (const kernels::KernelTable* table : kernels::runnable_tables()) {
    setenv("CANDOR_ISA", std::string(table->name).c_str(), 1);
    expect_same(options_of(GetParam(), 2), std::string(table->name));
    unsetenv("CANDOR_ISA");
  }
}

TEST_P(AdapterInvariance, over_ranks) {
  const auto engine = engine::open_with_backend(options_of(GetParam()), thread_ranks(2));
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(answers_together(**engine, requests_), alone_);
}

TEST_P(AdapterInvariance, those_loaded_later_are_the_same) {
  EngineOptions options = options_of(GetParam(), 2);
  const std::vector<AdapterSource> sources = std::move(options.adapters);
  options.adapters.clear();
  const auto engine = opened(options);
  ASSERT_NE(engine, nullptr);
  for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
    const auto loaded = engine->load_adapter(*source);
    ASSERT_TRUE(loaded) << loaded.error().message;
  }
  EXPECT_EQ(answers_together(*engine, requests_), alone_);
}

INSTANTIATE_TEST_SUITE_P(models, AdapterInvariance, ::testing::ValuesIn(adapter_cases()),
                         [](const auto& each) { return each.param.base; });

}  // namespace
}  // namespace candor::testing
