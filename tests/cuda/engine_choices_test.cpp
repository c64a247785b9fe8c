// Engines whose device has the logits: requests of every kind get the answers of the CPU, and what crosses to the host
// is what their choices need.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "cuda/counting_device.h"
#include "cuda/emulated.h"
#include "engine/engine_impl.h"
#include "engine_fixture.h"

namespace candor {
namespace {

using testing::Counts;
using testing::Crowd;

constexpr int32_t kVocab = 320;
constexpr int64_t kTokens = 6;

Request short_request(uint64_t seed) {
  Request request = testing::sampled(testing::token_prompt(9, kVocab, seed), kTokens, seed);
  request.sampling.ignore_eos = true;
  return request;
}

// Each with its own way to choose.
std::vector<Request> chain_requests() {
  std::vector<Request> requests;
  const auto add = [&](auto&& change) {
    Request request = short_request(requests.size() + 1);
    change(request.sampling);
    requests.push_back(std::move(request));
  };
  add([](SamplingParams& s) { s.temperature = 0.0; });
  add([](SamplingParams& s) { s.temperature = 0.0, s.logprobs = -1; });
  add([](SamplingParams& s) { s.temperature = 0.7, s.top_k = 20; });
  add([](SamplingParams& s) { s.temperature = 0.8, s.top_p = 0.9, s.logprobs = -1; });
  add([](SamplingParams& s) { s.temperature = 1.5, s.min_p = 0.1; });
  add([](SamplingParams& s) { s.typical_p = 0.6; });
  add([](SamplingParams& s) { s.top_k = 30, s.typical_p = 0.8, s.top_p = 0.95, s.logprobs_after_chain = true; });
  add([](SamplingParams& s) { s.repetition_penalty = 1.2, s.frequency_penalty = 0.5, s.presence_penalty = 0.3; });
  add([](SamplingParams& s) { s.temperature = 0.0, s.dry_multiplier = 1.0, s.no_repeat_ngram_size = 2; });
  add([](SamplingParams& s) {
    s.logit_bias = {{5, "", 4.0}, {9, "", -50.0}, {40, "", 0.0, true}}, s.allowed_token_ids = {5, 9, 40, 41, 300};
  });
  add([](SamplingParams& s) { s.dynatemp_range = 0.5, s.temperature = 0.9; });
  add([](SamplingParams& s) { s.xtc_probability = 0.5, s.xtc_threshold = 0.01; });
  return requests;
}

std::vector<Request> other_requests() {
  std::vector<Request> requests;
  const auto add = [&](auto&& change) {
    Request request = short_request(40 + requests.size());
    change(request);
    requests.push_back(std::move(request));
  };
  add([](Request& r) { r.n = 3; });
  add([](Request& r) { r.beams = BeamSearch{.width = 2}; });
  add([](Request& r) { r.constraint = {GrammarKind::kRegex, "[a-z ]{4,40}"}; });
  add([](Request& r) { r.constraint = {GrammarKind::kRegex, "[0-9]{2,30}"}, r.sampling.temperature = 0.0; });
  add([](Request& r) { r.sampling.explain = true; });
  add([](Request& r) { r.sampling.prompt_logprobs = 2; });
  add([](Request& r) { r.predicted = {{3, 4, 5, 6}}; });
  return requests;
}

std::vector<Completion> all_answers(const EngineOptions& options, const engine::BackendFactory& backend,
                                    const std::vector<Request>& requests, bool is_together) {
  auto engine = engine::open_with_backend(options, backend);
  EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
  if (!engine) return {};
  if (is_together) return Crowd(**engine).run(requests);
  std::vector<Completion> all;
  for (const Request& request : requests) all.push_back(testing::complete(**engine, request));
  return all;
}

Result<std::unique_ptr<backend::Backend>> cpu(const EngineOptions&) {
  return backend::make_cpu_backend({.n_threads = 1});
}

engine::BackendFactory counting_factory(Counts& counts) {
  return [&counts](const EngineOptions&) {
    return backend::make_cuda_backend(std::make_unique<testing::CountingDevice>(counts), {.n_threads = 1});
  };
}

class CudaEngineChoices : public testing::TinyModelTest {
 protected:
  EngineOptions options() {
    auto model = testing::tiny_model_of(DType::kQ4_K, 64, 256);
    model.vocab = kVocab;
    EngineOptions options = testing::options_for(tiny_path(model));
    options.n_ctx = 128;
    options.max_running = 8;
    options.max_rows = 48;
    options.costs = StepCosts{.points = {{1, 0.0}}, .attend_ns = 0};
    return options;
  }

  void expect_answers_of_the_cpu(const EngineOptions& options, const std::vector<Request>& requests) {
    const auto emulated = [](const EngineOptions&) -> Result<std::unique_ptr<backend::Backend>> {
      return testing::emulated_backend();
    };
    const auto wanted = all_answers(options, cpu, requests, false);
    const auto seen = all_answers(options, emulated, requests, true);
    ASSERT_EQ(seen.size(), wanted.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      testing::expect_same(seen[i], wanted[i], "request " + std::to_string(i));
      EXPECT_EQ(seen[i].more_choices.size(), wanted[i].more_choices.size());
      for (size_t j = 0; j < std::min(seen[i].more_choices.size(), wanted[i].more_choices.size()); ++j) {
        EXPECT_EQ(seen[i].more_choices[j].tokens, wanted[i].more_choices[j].tokens) << i;
        EXPECT_TRUE(seen[i].more_choices[j].logprobs == wanted[i].more_choices[j].logprobs) << i;
      }
    }
  }

  // What each step of one request's decoding asked of the device; without the first steps.
  std::vector<Counts> counts_of_steps(const Request& request) {
    Counts counts;
    auto engine = engine::open_with_backend(options(), counting_factory(counts));
    EXPECT_TRUE(engine.has_value()) << (engine ? "" : engine.error().message);
    if (!engine) return {};
    std::vector<Counts> steps;
    (*engine)->on_step([&](const StepReport&) { steps.push_back(std::exchange(counts, {})); });
    testing::complete(**engine, request);
    engine->reset();
    return {steps.begin() + 2, steps.end()};
  }
  std::vector<size_t> bytes_of_steps(const Request& request) {
    std::vector<size_t> bytes;
    for (const Counts& counts : counts_of_steps(request)) bytes.push_back(counts.bytes_out);
    EXPECT_GE(bytes.size(), 3u);
    return bytes;
  }
};

TEST_F(CudaEngineChoices, by_every_chain_are_those_of_the_cpu) {
  expect_answers_of_the_cpu(options(), chain_requests());
}

TEST_F(CudaEngineChoices, of_requests_of_every_kind_are_those_of_the_cpu) {
  expect_answers_of_the_cpu(options(), other_requests());
}

TEST_F(CudaEngineChoices, behind_drafts_are_those_of_the_cpu) {
  EngineOptions drafting = options();
  drafting.speculation = Speculation::kNgram;
  drafting.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
  std::vector<Request> requests = chain_requests();
  for (Request& request : requests) request.sampling.max_tokens = 12;
  expect_answers_of_the_cpu(drafting, requests);
}

TEST_F(CudaEngineChoices, behind_drafts_of_a_model_are_those_of_the_cpu) {
  EngineOptions drafting = options();
  drafting.speculation = Speculation::kDraft;
  drafting.draft_path = drafting.model_path;
  std::vector<Request> requests = chain_requests();
  for (Request& request : requests) request.sampling.max_tokens = 12;
  expect_answers_of_the_cpu(drafting, requests);
}

TEST_F(CudaEngineChoices, of_prompts_have_the_logprobs_of_the_cpu) {
  const auto prompt_logprobs = [&](const engine::BackendFactory& backend) {
    EngineOptions chunked = options();
    chunked.max_rows = 8;
    auto engine = engine::open_with_backend(chunked, backend);
    Request request = short_request(3);
    request.prompt = testing::token_prompt(21, kVocab, 3);
    request.sampling.prompt_logprobs = 4;
    request.sampling.temperature = 0.0;
    std::vector<PromptLogprob> all;
    EXPECT_TRUE((*engine)->generate(request, [&](const TokenEvent& event) {
      all.insert(all.end(), event.prompt_logprobs.begin(), event.prompt_logprobs.end());
    }));
    return all;
  };
  Counts counts;
  const auto wanted = prompt_logprobs(cpu);
  const auto seen = prompt_logprobs(counting_factory(counts));
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_LT(counts.bytes_out, 21 * 100u);
}

// Once steps are alike.
TEST_F(CudaEngineChoices, allocate_nothing_and_change_no_launch) {
  Request request = short_request(1);
  request.sampling.temperature = 0.7;
  for (const Counts& counts : counts_of_steps(request)) {
    EXPECT_EQ(counts.n_allocated, 0);
    EXPECT_EQ(counts.n_lists, 2);
    EXPECT_EQ(counts.n_lone_launches, 0);
    EXPECT_EQ(counts.n_changed, 0);
    EXPECT_EQ(counts.n_copies_in, 3);
    EXPECT_EQ(counts.n_copies_out, 1);
  }
}

// 24 bytes of sums for each query, and 12 for each of the best that is wanted.
TEST_F(CudaEngineChoices, copy_only_what_they_need_to_the_host) {
  Request request = short_request(1);
  request.sampling.temperature = 0.0;
  request.sampling.logprobs = -1;
  for (const size_t bytes : bytes_of_steps(request)) EXPECT_EQ(bytes, 24u + 12u);
  request.sampling.logprobs = 3;
  for (const size_t bytes : bytes_of_steps(request)) EXPECT_EQ(bytes, 24u + 3 * 12u);
  request.sampling.temperature = 0.7;
  request.sampling.top_k = 20;
  for (const size_t bytes : bytes_of_steps(request)) EXPECT_EQ(bytes, 2 * 24u + (20 + 3) * 12u);
  request.sampling.explain = true;
  for (const size_t bytes : bytes_of_steps(request)) EXPECT_EQ(bytes, kVocab * sizeof(float));
}

}  // namespace
}  // namespace candor
