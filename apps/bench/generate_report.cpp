#include "apps/bench/generate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "apps/charts/line_chart.h"
#include "model/arch_cost.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

double median(const std::vector<double>& ascending) {
  return ascending[ascending.size() / 2];
}

double of(const Json& row, std::string_view key) {
  return row.at(key).get<double>();
}

// Where a line's points lie, and which rows are of it.
struct Axis {
  explicit Axis(const Json& results) {
    std::set<double> prompts, batches;
    for (const Json& row : results) {
      prompts.insert(of(row, "prompt"));
      batches.insert(of(row, "batch"));
    }
    is_over_prompts = prompts.size() > 1 || batches.size() == 1;
    x.assign((is_over_prompts ? prompts : batches).begin(), (is_over_prompts ? prompts : batches).end());
    lines.assign((is_over_prompts ? batches : prompts).begin(), (is_over_prompts ? batches : prompts).end());
  }

  const char* x_key() const { return is_over_prompts ? "prompt" : "batch"; }
  const char* line_key() const { return is_over_prompts ? "batch" : "prompt"; }
  const char* x_label() const { return is_over_prompts ? "tokens of the prompt" : "sequences together"; }

  bool is_over_prompts = true;
  std::vector<double> x, lines;
};

class Pictures {
 public:
  explicit Pictures(const Json& report)
      : results_(report.at("results")), arithmetic_(report.at("arithmetic").get<std::string>()), axis_(results_) {
    for (const Json& row : results_) has_naive_ = has_naive_ || !row.at("kv_cache").get<bool>();
  }

  Svg prefill() {
    LineChart chart = begin("Prefill, tokens a second");
    for (size_t i = 0; i < axis_.lines.size(); ++i)
      add(chart, {name(axis_.lines[i]), "prefill_tokens_per_second", true, ink_of(i)}, axis_.lines[i]);
    add_limit(chart, fmt::format("limit: {} arithmetic", arithmetic_), axis_.lines.front(),
              [](const Json& row) { return of(row, "prefill_tokens_per_second") / of(row, "prefill_share"); });
    return draw(chart);
  }

  Svg decode() {
    LineChart chart = begin("Decode, tokens a second");
    for (size_t i = 0; i < axis_.lines.size(); ++i) {
      const double line = axis_.lines[i];
      add(chart, {name(line), "decode_tokens_per_second", true, ink_of(i)}, line);
      if (has_naive_) add(chart, {name(line) + " no cache", "decode_tokens_per_second", false, ink_of(i)}, line);
      const std::string limit = axis_.is_over_prompts ? fmt::format("limit: DRAM, {}", name(line)) : "limit: DRAM";
      if (axis_.is_over_prompts || i == 0) {
        add_limit(chart, limit, line,
                  [](const Json& row) { return of(row, "decode_tokens_per_second") / of(row, "decode_dram_share"); });
      }
    }
    return draw(chart);
  }

  Svg latency() {
    LineChart chart = begin("Latency, ms");
    for (size_t i = 0; i < axis_.lines.size(); ++i) {
      const double line = axis_.lines[i];
      add(chart, {"first token, " + name(line), "prefill_ms", true, ink_of(2 * i)}, line);
      add(chart, {"each further, " + name(line), "decode_step_ms", true, ink_of(2 * i + 1)}, line);
      if (has_naive_)
        add(chart, {"further, no cache, " + name(line), "decode_step_ms", false, ink_of(2 * i + 1)}, line);
    }
    add_limit(chart, "limit: a read of the weights", axis_.lines.front(),
              [](const Json& row) { return of(row, "decode_step_ms") * of(row, "decode_dram_share"); });
    return draw(chart);
  }

 private:
  struct Kind {
    std::string name;
    const char* column;
    bool has_cache;
    Ink ink;
  };

  LineChart begin(std::string title) const { return {std::move(title), axis_.x_label(), axis_.x, {}}; }
  std::string name(double line) const { return fmt::format("{} {:g}", axis_.line_key(), line); }

  std::vector<Point> points(double line, bool has_cache, const std::function<double(const Json&)>& value) const {
    std::vector<Point> found;
    for (const Json& row : results_) {
      if (of(row, axis_.line_key()) == line && row.at("kv_cache").get<bool>() == has_cache)
        found.push_back({of(row, axis_.x_key()), value(row)});
    }
    std::ranges::sort(found, {}, &Point::x);
    return found;
  }

  void add(LineChart& chart, const Kind& kind, double line) const {
    auto found = points(line, kind.has_cache, [&](const Json& row) { return of(row, kind.column); });
    chart.lines.push_back({kind.name, std::move(found), kind.ink, kind.has_cache ? Stroke::kSolid : Stroke::kLongDash});
  }

  // In a stroke that no other limit of the chart has.
  void add_limit(LineChart& chart, const std::string& name, double line,
                 const std::function<double(const Json&)>& value) const {
    const auto n = static_cast<size_t>(std::ranges::count(chart.lines, false, &ChartLine::has_marks));
    constexpr std::array kStrokes = {Stroke::kDashed, Stroke::kDotted, Stroke::kDashDot};
    chart.lines.push_back({name, points(line, true, value), Ink::kQuiet, kStrokes[n % kStrokes.size()], false});
  }

  const Json& results_;
  const std::string arithmetic_;
  const Axis axis_;
  bool has_naive_ = false;
};

std::string speed_text(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

}  // namespace

Json generate_row(const MeasuredCase& m, const model::Model& model, const kernels::MachineLimits& limits) {
  const double prefill = median(m.prefill), decode = median(m.decode);
  const double steps_per_s = decode / m.run_case.n_batch;
  const model::ArchCost& cost = model.cost();
  const double step_bytes = cost.read_share(m.run_case.n_batch) * static_cast<double>(model.weight_bytes());
  return {{"prompt", m.run_case.n_prompt},
          {"new", m.run_case.n_new},
          {"batch", m.run_case.n_batch},
          {"kv_cache", m.run_case.use_kv_cache},
          {"shared", m.run_case.n_shared},
          {"prefill_tokens_per_second", prefill},
          {"prefill_range", {m.prefill.front(), m.prefill.back()}},
          {"prefill_ms", 1e3 * static_cast<double>(m.run_case.n_prefilled()) / prefill},
          {"prefill_share", 2.0 * cost.used_parameters() * prefill / limits.ops(cost.arithmetic)},
          {"decode_tokens_per_second", decode},
          {"decode_range", {m.decode.front(), m.decode.back()}},
          {"decode_step_ms", 1e3 / steps_per_s},
          {"decode_exchanges", static_cast<double>(m.traffic.n_exchanges) / m.run_case.n_new},
          {"decode_sent_bytes", static_cast<double>(m.traffic.n_bytes) / m.run_case.n_new},
          {"decode_weight_bytes", step_bytes},
          {"decode_dram_share", step_bytes * steps_per_s / limits.dram_read_bytes}};
}

std::string generate_table_head(const Json& report) {
  return fmt::format("{:>7} {:>4} {:>5} {:>5} {:>11} {:>8} {:>7} {:>10} {:>7} {:>7}\n", "prompt", "new", "batch",
                     "cache", "prefill t/s", "ms", "of " + report.at("arithmetic").get<std::string>(), "decode t/s",
                     "ms/step", "of DRAM");
}

std::string generate_table_row(const Json& r) {
  return fmt::format("{:>7} {:>4} {:>5} {:>5} {:>11.1f} {:>8.1f} {:>5.0f} % {:>10.1f} {:>7.2f} {:>5.0f} %\n",
                     r["prompt"].get<int>(), r["new"].get<int>(), r["batch"].get<int>(),
                     r["kv_cache"].get<bool>() ? "yes" : "no", of(r, "prefill_tokens_per_second"), of(r, "prefill_ms"),
                     100 * of(r, "prefill_share"), of(r, "decode_tokens_per_second"), of(r, "decode_step_ms"),
                     100 * of(r, "decode_dram_share"));
}

std::string ranks_row(const Json& r, const model::Model& model) {
  const double n_exchanges = of(r, "decode_exchanges");
  if (n_exchanges == 0) return {};
  return fmt::format("{:>20} a step of decoding: {:.0f} exchanges ({:.1f} a layer), {:.1f} kB sent by rank 0\n", "",
                     n_exchanges, n_exchanges / static_cast<double>(model.spec().blocks.size()),
                     of(r, "decode_sent_bytes") / 1e3);
}

std::string generate_heading(const Json& report) {
  return fmt::format("{}, {}", std::filesystem::path(report.at("model").get<std::string>()).filename().string(),
                     report.at("backend").get<std::string>());
}

std::vector<Svg> generate_pictures(const Json& report) {
  Pictures pictures(report);
  return {pictures.prefill(), pictures.decode(), pictures.latency()};
}

ReportPage generate_page(const Json& report) {
  const Json& limits = report.at("limits");
  const std::string arithmetic = report.at("arithmetic").get<std::string>();
  const std::string peak = arithmetic + (arithmetic == "int8" ? "_ops_per_second" : "_flops_per_second");
  ReportTable table{"Prefill and decode, medians",
                    {"prompt", "new", "batch", "K/V cache", "prefill, tok/s", "first token, ms", "of " + arithmetic,
                     "decode, tok/s", "a step, ms", "of DRAM"},
                    {}};
  for (const Json& row : report.at("results")) {
    table.rows.push_back(
        {fmt::format("{}", row.at("prompt").get<int>()), fmt::format("{}", row.at("new").get<int>()),
         fmt::format("{}", row.at("batch").get<int>()), row.at("kv_cache").get<bool>() ? "yes" : "no",
         speed_text(of(row, "prefill_tokens_per_second")), fmt::format("{:.1f}", of(row, "prefill_ms")),
         fmt::format("{:.0f} %", 100 * of(row, "prefill_share")), speed_text(of(row, "decode_tokens_per_second")),
         fmt::format("{:.2f}", of(row, "decode_step_ms")),
         fmt::format("{:.0f} %", 100 * of(row, "decode_dram_share"))});
  }
  return {"Prefill and decode: " + generate_heading(report),
          {{"model", report.at("model").get<std::string>()},
           {"computed by", report.at("backend").get<std::string>()},
           {"memory, measured", fmt::format("{:.1f} GB/s", of(limits, "dram_read_bytes_per_second") / 1e9)},
           {arithmetic + ", measured", fmt::format("{:.3f} TOP/s", of(limits, peak) / 1e12)}},
          {std::move(table)},
          generate_pictures(report),
          report.dump(2)};
}

}  // namespace candor::apps
