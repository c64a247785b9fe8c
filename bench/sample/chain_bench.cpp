// What one choice costs at a vocabulary of 150 000: a row as a trained model gives it (a few likely tokens over a broad
// floor), and one without any peak, the worst case for every cut. The figure to hold: 0.3 ms for a chain on a model's
// row.

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "platform/float_mode.h"
#include "sample/params.h"
#include "sample/sampler.h"

namespace candor::sample {
namespace {

constexpr size_t kVocab = 150000;

std::vector<float> make_row(bool is_peaked) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, is_peaked ? 2.0f : 3.0f);
  std::vector<float> row(kVocab);
  for (float& logit : row) logit = normal(random);
  if (!is_peaked) return row;
  for (size_t rank = 0; rank < 400; ++rank) row[random() % kVocab] = 20.0f - 1.6f * std::log(1.0f + float(rank));
  return row;
}

SamplingParams all_stages() {
  SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.top_k = 100;
  sampling.top_p = 0.95;
  sampling.min_p = 0.02;
  sampling.typical_p = 0.98;
  sampling.xtc_probability = 0.5;
  sampling.repetition_penalty = 1.1;
  sampling.frequency_penalty = 0.2;
  sampling.presence_penalty = 0.1;
  sampling.dry_multiplier = 0.8;
  sampling.no_repeat_ngram_size = 4;
  return sampling;
}

struct Chain {
  const char* name;
  SamplingParams sampling;
  int32_t n_logprobs = -1;
};

std::vector<Chain> chains() {
  return {{"greedy", {.temperature = 0.0}},
          {"draw", {}},
          {"top_p", {.top_p = 0.9}},
          {"temperature_top_p", {.temperature = 0.7, .top_p = 0.9}},
          {"default_chain", {.temperature = 0.7, .top_k = 40, .top_p = 0.9, .min_p = 0.05, .frequency_penalty = 0.1}},
          {"top_k_1000", {.temperature = 0.7, .top_k = 1000}},
          {"every_stage", all_stages()},
          {"draw_logprobs_20", {}, 20}};
}

void pick_tokens(benchmark::State& state, const std::vector<float>& row, const Chain& chain) {
  const platform::ScopedFloatMode float_mode;
  const auto params = make_chain_params(chain.sampling);
  std::mt19937 random(2);
  std::vector<TokenId> text(2000);
  for (TokenId& token : text) token = static_cast<TokenId>(random() % 5000);
  Sampler sampler(*kernels::select_table_from_environment().value());
  Pick pick;
  PickRequest request{.logits = row, .chain = *params, .history = {text, 1000}, .n_logprobs = chain.n_logprobs};
  for (auto _ : state) {
    ++request.key.position;
    if (!sampler.pick(request, pick)) state.SkipWithError("no token");
    benchmark::DoNotOptimize(pick.token);
  }
}

}  // namespace
}  // namespace candor::sample

int main(int argc, char** argv) {
  using namespace candor::sample;
  const auto peaked = make_row(true);
  const auto flat = make_row(false);
  for (const Chain& chain : chains()) {
    for (const auto* row : {&peaked, &flat}) {
      const std::string name = std::string(chain.name) + (row == &peaked ? "/model" : "/flat");
      benchmark::RegisterBenchmark(name.c_str(), [row, chain](benchmark::State& s) {
        pick_tokens(s, *row, chain);
      })->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
