// Any bytes as the numbers and names of `candor sample`: read and weighed, or refused in one line.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/explain/bare_sampler.h"
#include "apps/options/typed_numbers.h"
#include "fuzz/fuzz_budget.h"

namespace {

void demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

void demand_one_line(const candor::Error& error) {
  demand(!error.message.empty() && error.message.find('\n') == std::string::npos, "the error is not one line");
}

void weigh(const std::vector<double>& numbers) {
  candor::apps::BareChoice choice;
  choice.logits.assign(numbers.begin(), numbers.end());
  choice.sampling.temperature = 0.7;
  choice.sampling.top_p = 0.9;
  choice.n_draws = 3;
  const auto outcome = candor::apps::sample_alone(choice);
  if (!outcome) return demand_one_line(outcome.error());
  double sum = 0;
  for (const double p : outcome->probabilities) sum += p;
  demand(std::abs(sum - 1) < 1e-3, "the probabilities do not sum to 1");
  demand(outcome->probabilities[static_cast<size_t>(outcome->token)] > 0, "what cannot be drawn was drawn");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('@')) text.front() = ' ';  // names a file
  const auto labels = candor::apps::read_labels(text, "--labels");
  if (!labels) demand_one_line(labels.error());
  const auto numbers = candor::apps::read_numbers(text, "--logits");
  if (!numbers) {
    demand_one_line(numbers.error());
  } else {
    demand(!numbers->empty() && numbers->size() <= candor::apps::kMostNumbers, "as many numbers as nobody may give");
    weigh(*numbers);
  }
  return 0;
}
