#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "apps/bench/serve_report.h"

#include "base/error.h"
#include "candor/event.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

// The least value that so many of a hundred are not above.
double percentile(const std::vector<double>& ascending, double percent) {
  if (ascending.empty()) return 0;
  const double rank = percent / 100.0 * static_cast<double>(ascending.size());
  const size_t index = static_cast<size_t>(std::max(0.0, std::ceil(rank) - 1));
  return ascending[std::min(index, ascending.size() - 1)];
}

Json distribution(std::vector<double> values) {
  std::ranges::sort(values);
  double sum = 0;
  for (const double value : values) sum += value;
  const double mean = values.empty() ? 0 : sum / static_cast<double>(values.size());
  return {{"count", values.size()},
          {"mean", mean},
          {"p50", percentile(values, 50)},
          {"p90", percentile(values, 90)},
          {"p95", percentile(values, 95)},
          {"p99", percentile(values, 99)},
          {"max", values.empty() ? 0 : values.back()}};
}

void append_gaps(const LoadRecord& record, double begin_s, double end_s, std::vector<double>& gaps_ms) {
  for (size_t i = 1; i < record.token_s.size(); ++i) {
    if (record.token_s[i] < begin_s || record.token_s[i] > end_s) continue;
    gaps_ms.push_back(1e3 * (record.token_s[i] - record.token_s[i - 1]));
  }
}

std::string row(const char* name, const Json& d) {
  return fmt::format("{:<6} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", name,
                     d["mean"].get<double>(), d["p50"].get<double>(), d["p90"].get<double>(), d["p95"].get<double>(),
                     d["p99"].get<double>(), d["max"].get<double>());
}

LoadRun run_lengths(Engine& engine, const std::vector<LoadRequest>& requests, uint64_t seed) {
  return run_load(engine, Load{.requests = requests}, {.seed = seed});
}

Result<void> all_done(const LoadRun& run) {
  if (run.was_interrupted) return fail(ErrorKind::kCancelled, "interrupted");
  for (const LoadRecord& record : run.records) {
    if (!record.is_done)
      return fail(ErrorKind::kInvalidInput, record.error.empty() ? "a request did not end by itself" : record.error);
  }
  return {};
}

}  // namespace

Json load_report(const LoadRun& run, const Load& load, const ServiceGoal& goal) {
  std::vector<double> ttft, itl, tpot, e2e, queue;
  int64_t n_in = 0, n_out = 0, n_cached = 0, n_preempted = 0, n_good = 0;
  for (const LoadRecord& record : run.records) {
    if (!record.is_done) continue;
    ttft.push_back(record.ttft_ms());
    tpot.push_back(record.tpot_ms());
    e2e.push_back(record.e2e_ms());
    queue.push_back(record.summary.timings.queue_ms);
    append_gaps(record, 0, run.duration_s, itl);
    n_in += record.summary.usage.prompt_tokens;
    n_out += record.summary.usage.completion_tokens;
    n_cached += record.summary.usage.cached_tokens;
    n_preempted += record.summary.usage.preemptions;
    const bool in_time = goal.ttft_ms <= 0 || record.ttft_ms() <= goal.ttft_ms;
    n_good += in_time && (goal.tpot_ms <= 0 || record.tpot_ms() <= goal.tpot_ms) ? 1 : 0;
  }
  const double s = run.duration_s;
  return {{"requests", run.records.size()},
          {"completed", e2e.size()},
          {"not_completed", run.records.size() - e2e.size()},
          {"cut_to_context", load.n_cut},
          {"duration_s", s},
          {"prompt_tokens", n_in},
          {"completion_tokens", n_out},
          {"cached_tokens", n_cached},
          {"preemptions", n_preempted},
          {"requests_per_second", static_cast<double>(e2e.size()) / s},
          {"output_tokens_per_second", static_cast<double>(n_out) / s},
          {"total_tokens_per_second", static_cast<double>(n_in + n_out) / s},
          {"goal", {{"ttft_ms", goal.ttft_ms}, {"tpot_ms", goal.tpot_ms}}},
          {"goodput_requests_per_second", static_cast<double>(n_good) / s},
          {"decode_only_tokens_per_second",
           run.decode.ms > 0 ? 1e3 * static_cast<double>(run.decode.n_tokens) / run.decode.ms : 0.0},
          {"queue_ms", distribution(queue)},
          {"ttft_ms", distribution(ttft)},
          {"itl_ms", distribution(itl)},
          {"tpot_ms", distribution(tpot)},
          {"e2e_ms", distribution(e2e)}};
}

std::string load_text(const Json& r) {
  std::string out =
      fmt::format("{} requests, {} completed, {} cut to the context, in {:.1f} s\n", r["requests"].get<int64_t>(),
                  r["completed"].get<int64_t>(), r["cut_to_context"].get<int64_t>(), r["duration_s"].get<double>());
  out += fmt::format("{} tokens in ({} cached), {} out, {} preemptions\n", r["prompt_tokens"].get<int64_t>(),
                     r["cached_tokens"].get<int64_t>(), r["completion_tokens"].get<int64_t>(),
                     r.value("preemptions", int64_t{0}));
  out += fmt::format("{:.2f} requests/s, {:.1f} tokens/s out, {:.1f} in and out, goodput {:.2f} requests/s\n",
                     r["requests_per_second"].get<double>(), r["output_tokens_per_second"].get<double>(),
                     r["total_tokens_per_second"].get<double>(), r["goodput_requests_per_second"].get<double>());
  if (r.contains("decode_only_tokens_per_second"))
    out += fmt::format("{:.1f} tokens/s in steps that only decode\n", r["decode_only_tokens_per_second"].get<double>());
  out +=
      fmt::format("{:<6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "ms", "mean", "p50", "p90", "p95", "p99", "max");
  if (r.contains("queue_ms")) out += row("queue", r["queue_ms"]);
  return out + row("TTFT", r["ttft_ms"]) + row("ITL", r["itl_ms"]) + row("TPOT", r["tpot_ms"]) +
         row("E2E", r["e2e_ms"]);
}

namespace {

constexpr int32_t kShortPrompt = 32;
constexpr int32_t kTokensAlone = 100;  // decoded before the long prompt comes, where the context has room

Result<double> first_token_s(Engine& engine, int32_t n_prompt, uint64_t seed) {
  const LoadRun run = run_lengths(engine, {{0, n_prompt, 2}}, seed);
  CANDOR_TRY(all_done(run));
  return run.records[0].ttft_ms() / 1e3;
}

// Gaps of the decoding requests while the last one reads its prompt, and alone: for as long after it as before, so that
// they look as far back.
struct DisturbedGaps {
  std::vector<double> alone, disturbed;

  explicit DisturbedGaps(const LoadRun& run) {
    const LoadRecord& reader = run.records.back();
    const auto decoding = std::span(run.records).first(run.records.size() - 1);
    double begin_s = 0;
    for (const LoadRecord& record : decoding) begin_s = std::max(begin_s, record.token_s.front());
    const double end_s = reader.token_s.back() + (reader.submitted_s - begin_s);
    for (const LoadRecord& record : decoding) {
      append_gaps(record, begin_s, reader.submitted_s, alone);
      append_gaps(record, reader.submitted_s, reader.token_s.front(), disturbed);
      append_gaps(record, reader.token_s.back(), end_s, alone);
    }
  }
};

}  // namespace

// The decoding requests are long enough to outlast the reading, were it at a quarter of its pace alone, which is
// measured before and after.
Result<Json> disturb_report(Engine& engine, int32_t n_long, int32_t n_decoding) {
  CANDOR_ASSIGN(const double before_s, first_token_s(engine, n_long, 1));
  const LoadRun pace =
      run_lengths(engine, std::vector<LoadRequest>(static_cast<size_t>(n_decoding), {0, kShortPrompt, 24}), 2);
  CANDOR_TRY(all_done(pace));
  std::vector<double> gaps;
  for (const LoadRecord& record : pace.records) append_gaps(record, 0, pace.duration_s, gaps);
  const double itl_s = distribution(gaps)["p50"].get<double>() / 1e3;
  const int32_t n_new =
      std::min(engine.info().n_ctx - kShortPrompt, static_cast<int32_t>(3.0 * before_s / itl_s) + 2 * kTokensAlone);
  std::vector<LoadRequest> both(static_cast<size_t>(n_decoding), {0, kShortPrompt, n_new});
  const int32_t n_alone = std::min(kTokensAlone, n_new / 4);
  both.push_back({n_alone * itl_s + pace.records[0].ttft_ms() / 1e3, n_long, 2});
  const LoadRun together = run_lengths(engine, both, 3);
  CANDOR_TRY(all_done(together));
  CANDOR_ASSIGN(const double after_s, first_token_s(engine, n_long, 4));
  const double solo_ms = 1e3 * (before_s + after_s) / 2;
  const double ttft_ms = together.records.back().ttft_ms();
  const DisturbedGaps of(together);
  if (of.alone.empty() || of.disturbed.empty()) {
    return fail(
        ErrorKind::kInvalidInput,
        "bench serve --disturb: no token came while the prompt was read; give a longer one, and room for it (-c)");
  }
  const Json alone = distribution(of.alone), disturbed = distribution(of.disturbed);
  return Json{{"long_prompt_tokens", n_long},
              {"decoding", n_decoding},
              {"solo_ttft_ms", solo_ms},
              {"ttft_ms", ttft_ms},
              {"read_rate_share", solo_ms / ttft_ms},
              {"undisturbed_itl_ms", alone},
              {"disturbed_itl_ms", disturbed},
              {"p99_over_undisturbed_p50", disturbed["p99"].get<double>() / alone["p50"].get<double>()}};
}

std::string disturb_text(const Json& r) {
  return fmt::format(
      "a prompt of {} tokens: first token after {:.0f} ms alone, {:.0f} ms beside {} that decode ({:.0f} % of the "
      "rate)\n"
      "their ITL: p50 {:.1f} ms and p99 {:.1f} ms alone, p99 {:.1f} ms while it is read ({:.2f} x the p50 alone)\n",
      r["long_prompt_tokens"].get<int>(), r["solo_ttft_ms"].get<double>(), r["ttft_ms"].get<double>(),
      r["decoding"].get<int>(), 100 * r["read_rate_share"].get<double>(), r["undisturbed_itl_ms"]["p50"].get<double>(),
      r["undisturbed_itl_ms"]["p99"].get<double>(), r["disturbed_itl_ms"]["p99"].get<double>(),
      r["p99_over_undisturbed_p50"].get<double>());
}

Result<Json> prefix_report(Engine& engine, int32_t n_prompt) {
  const LoadRun cold = run_lengths(engine, {{0, n_prompt, 32}}, 5);
  CANDOR_TRY(all_done(cold));
  const LoadRun warm = run_lengths(engine, {{0, n_prompt, 32}}, 5);
  CANDOR_TRY(all_done(warm));
  const double cold_ms = cold.records[0].ttft_ms(), warm_ms = warm.records[0].ttft_ms();
  return Json{{"prompt_tokens", n_prompt},         {"cached_tokens", warm.records[0].summary.usage.cached_tokens},
              {"cold_ttft_ms", cold_ms},           {"warm_ttft_ms", warm_ms},
              {"times_sooner", cold_ms / warm_ms}, {"equal", cold.records[0].tokens == warm.records[0].tokens}};
}

std::string prefix_text(const Json& r) {
  return fmt::format("{} tokens: first token after {:.1f} ms cold, {:.1f} ms warm ({} cached): {:.1f} x sooner, {}\n",
                     r["prompt_tokens"].get<int>(), r["cold_ttft_ms"].get<double>(), r["warm_ttft_ms"].get<double>(),
                     r["cached_tokens"].get<int>(), r["times_sooner"].get<double>(),
                     r["equal"].get<bool>() ? "the same answer" : "ANOTHER ANSWER");
}

}  // namespace candor::apps
