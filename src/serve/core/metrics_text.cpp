#include "serve/core/metrics_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace candor::serve {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string escaped(std::string_view text, bool is_quoted) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (is_quoted && c == '"')) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

void MetricsText::counter(std::string_view name, std::string_view help, double value, const MetricLabels& labels) {
  samples_of(name, help, "counter") += fmt::format("{}{} {}\n", name, labels_with(labels), number(value));
}

void MetricsText::gauge(std::string_view name, std::string_view help, double value, const MetricLabels& labels) {
  samples_of(name, help, "gauge") += fmt::format("{}{} {}\n", name, labels_with(labels), number(value));
}

void MetricsText::histogram(std::string_view name, std::string_view help, std::span<const MetricBucket> buckets,
                            uint64_t count, double sum) {
  std::string& samples = samples_of(name, help, "histogram");
  const std::string labels = labels_with({});
  samples += fmt::format("{}_count{} {}\n{}_sum{} {}\n", name, labels, count, name, labels, number(sum));
  for (const MetricBucket& bucket : buckets) {
    const std::string bound = labels_with({{"le", number(bucket.bound)}});
    samples += fmt::format("{}_bucket{} {}\n", name, bound, bucket.count);
  }
  samples += fmt::format("{}_bucket{} {}\n", name, labels_with({{"le", "+Inf"}}), count);
}

std::string MetricsText::text() const {
  std::string out;
  for (const Family& family : families_) out += family.head + family.samples;
  return out;
}

std::string& MetricsText::samples_of(std::string_view name, std::string_view help, std::string_view type) {
  const auto [place, is_new] = places_.emplace(name, families_.size());
  if (is_new) {
    families_.push_back({fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type), {}});
  }
  return families_[place->second].samples;
}

std::string MetricsText::labels_with(const MetricLabels& own) const {
  std::string out;
  for (const MetricLabels* labels : {&shared_, &own}) {
    for (const MetricLabel& label : *labels) {
      fmt::format_to(std::back_inserter(out), "{}{}=\"{}\"", out.empty() ? "" : ",", label.name,
                     escaped(label.value, true));
    }
  }
  return out.empty() ? out : "{" + out + "}";
}

}  // namespace candor::serve
