#include "apps/bench/load_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/charts/line_chart.h"
#include "apps/charts/timeline.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kParts = 80;  // of the time, each with one value

TimelineRow row_of(const LoadRecord& record, bool knows_queue, double duration_s) {
  TimelineRow row{.arrived = record.submitted_s, .is_done = record.is_done};
  row.end = record.end_s > 0 ? record.end_s : duration_s;
  row.first_token = record.token_s.empty() ? row.end : record.token_s.front();
  const double queue_s = knows_queue ? record.summary.timings.queue_ms / 1e3 : 0;
  row.started = std::min(record.submitted_s + queue_s, row.first_token);
  row.tokens = record.token_s;
  return row;
}

LineChart tokens_chart(const LoadRun& run) {
  std::vector<double> counts(kParts, 0.0);
  const double part_s = run.duration_s / kParts;
  for (const LoadRecord& record : run.records) {
    for (const double token_s : record.is_done ? record.token_s : std::vector<double>{})
      counts[static_cast<size_t>(std::clamp(token_s / part_s, 0.0, kParts - 1.0))] += 1;
  }
  LineChart chart{"Tokens a second", "seconds", {}, {{.name = "out", .points = {}, .has_marks = false}}};
  for (int i = 0; i < kParts; ++i)
    chart.lines[0].points.push_back({(i + 0.5) * part_s, counts[static_cast<size_t>(i)] / part_s});
  return chart;
}

LineChart requests_chart(const LoadRun& run, bool knows_queue) {
  LineChart chart{"Requests", "seconds", {}, {{.name = "in work or waiting", .points = {}, .has_marks = false}}};
  if (knows_queue)
    chart.lines.push_back(
        {.name = "waiting", .points = {}, .ink = Ink::kOchre, .stroke = Stroke::kDashed, .has_marks = false});
  const double part_s = run.duration_s / kParts;
  for (int i = 0; i < kParts; ++i) {
    const double t = (i + 0.5) * part_s;
    double n_inside = 0, n_waiting = 0;
    for (const LoadRecord& record : run.records) {
      const TimelineRow row = row_of(record, knows_queue, run.duration_s);
      if (t < row.arrived || t >= row.end) continue;
      ++n_inside;
      n_waiting += t < row.started ? 1 : 0;
    }
    chart.lines[0].points.push_back({t, n_inside});
    if (knows_queue) chart.lines[1].points.push_back({t, n_waiting});
  }
  return chart;
}

std::vector<std::string> distribution_row(const char* name, const Json& d) {
  std::vector<std::string> cells = {name};
  for (const char* column : {"mean", "p50", "p90", "p95", "p99", "max"})
    cells.push_back(fmt::format("{:.1f}", d.at(column).get<double>()));
  return cells;
}

}  // namespace

std::vector<Svg> load_pictures(const LoadRun& run, bool knows_queue) {
  Timeline timeline{.title = "Every request, in the order of arrival", .knows_queue = knows_queue, .rows = {}};
  for (const LoadRecord& record : run.records) timeline.rows.push_back(row_of(record, knows_queue, run.duration_s));
  return {draw(timeline), draw(tokens_chart(run)), draw(requests_chart(run, knows_queue))};
}

ReportPage load_page(const std::string& heading, const Json& json, std::vector<Svg> pictures) {
  const Json& results = json.at("results");
  ReportPage page{.heading = heading, .facts = {}, .tables = {}, .pictures = std::move(pictures), .json = json.dump(2)};
  for (const char* name : {"url", "model", "backend"}) {
    if (json.contains(name)) page.facts.emplace_back(name, json.at(name).get<std::string>());
  }
  page.facts.emplace_back("requests", fmt::format("{} in {:.1f} s, {} completed", results.at("requests").get<int64_t>(),
                                                  results.at("duration_s").get<double>(),
                                                  results.at("completed").get<int64_t>()));
  page.facts.emplace_back("tokens", fmt::format("{} in ({} cached), {} out", results.at("prompt_tokens").get<int64_t>(),
                                                results.at("cached_tokens").get<int64_t>(),
                                                results.at("completion_tokens").get<int64_t>()));
  page.facts.emplace_back("pace", fmt::format("{:.2f} requests/s, {:.1f} tokens/s out, goodput {:.2f} requests/s",
                                              results.at("requests_per_second").get<double>(),
                                              results.at("output_tokens_per_second").get<double>(),
                                              results.at("goodput_requests_per_second").get<double>()));
  ReportTable table{"How long things took, ms", {"", "mean", "p50", "p90", "p95", "p99", "max"}, {}};
  for (const auto& [key, name] :
       {std::pair{"queue_ms", "queue"}, std::pair{"ttft_ms", "TTFT"}, std::pair{"itl_ms", "ITL"},
        std::pair{"tpot_ms", "TPOT"}, std::pair{"e2e_ms", "E2E"}}) {
    if (results.contains(key)) table.rows.push_back(distribution_row(name, results.at(key)));
  }
  page.tables.push_back(std::move(table));
  return page;
}

}  // namespace candor::apps
