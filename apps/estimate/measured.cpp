#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/bench/generate.h"
#include "apps/estimate/figures.h"
#include "apps/estimate/options.h"
#include "apps/estimate/subject.h"
#include "base/error.h"

namespace candor::apps {
namespace {

constexpr int kRuns = 3;          // the median counts
constexpr double kLongRun_s = 5;  // of one that takes longer there is one

double prefill_and_decode(const GenerateTimes& times) {
  return times.prefill_s + times.decode_s;
}

Result<GenerateTimes> median_run(GenerateBench& bench, const GenerateCase& run_case) {
  std::vector<GenerateTimes> runs;
  do {
    CANDOR_ASSIGN(const GenerateTimes times, bench.run(run_case));
    runs.push_back(times);
  } while (runs.size() < kRuns && prefill_and_decode(runs.front()) < kLongRun_s);
  std::ranges::sort(runs, {}, prefill_and_decode);
  return runs[runs.size() / 2];
}

}  // namespace

Result<nlohmann::ordered_json> measured_figures(const Subject& subject, const SubjectImage* image,
                                                const EstimateOptions& options) {
  const auto n_prompt = static_cast<int32_t>(options.prompt_tokens()),
             n_new = static_cast<int32_t>(options.new_tokens()), n_batch = static_cast<int32_t>(options.sequences());
  const GenerateCase whole{n_prompt, n_new, n_batch, true};
  const GenerateCase first{n_prompt, 1, n_batch, false}, last{n_prompt + n_new - 1, 1, n_batch, false};
  CANDOR_ASSIGN(const auto bench,
                GenerateBench::open({.model_path = subject.file,
                                     .backend = options.device,
                                     .n_threads = static_cast<int32_t>(options.n_threads.value_or(0))},
                                    {whole, first, last}));
  CANDOR_TRY(bench->run({std::min(n_prompt, 64), 2, n_batch, true}));  // warm-up
  CANDOR_ASSIGN(const GenerateTimes times, median_run(*bench, whole));
  CANDOR_ASSIGN(const GenerateTimes at_first, median_run(*bench, first));
  CANDOR_ASSIGN(const GenerateTimes at_last, median_run(*bench, last));
  double encode_ms = 0;
  if (image != nullptr) {
    CANDOR_ASSIGN(encode_ms, measured_encode_ms(*image));
    encode_ms *= n_batch;
  }
  const double ttft_ms = encode_ms + 1e3 * times.prefill_s, itl_ms = 1e3 * times.decode_s / n_new;
  const double answer_ms = ttft_ms + itl_ms * n_new;
  const double naive_ms = ttft_ms + 1e3 * n_new * (at_first.decode_s + at_last.decode_s) / 2;
  nlohmann::ordered_json json = {{"backend", bench->backend_info().description},
                                 {"weight_bytes", static_cast<double>(bench->model().weight_bytes())},
                                 {"kv_bytes", static_cast<double>(bench->kv_bytes())},
                                 {"ttft_ms", ttft_ms},
                                 {"itl_ms", itl_ms},
                                 {"answer_ms", answer_ms},
                                 {"decode_tokens_per_second", 1e3 * n_batch / itl_ms},
                                 {"answers_per_second", 1e3 * n_batch / answer_ms},
                                 {"naive_ms", naive_ms},
                                 {"naive_times", naive_ms / answer_ms}};
  if (image != nullptr) json["encode_ms"] = encode_ms;
  return json;
}

}  // namespace candor::apps
