#pragma once
// Metrics as text for Prometheus (its text format, version 0.0.4): families in the order of their first metric.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace candor::serve {

struct MetricLabel {
  std::string name;
  std::string value;
};
using MetricLabels = std::vector<MetricLabel>;

// count: of what was seen up to the bound, whatever lies below smaller ones included.
struct MetricBucket {
  double bound;
  uint64_t count;
};

class MetricsText {
 public:
  // Of every metric that is added from now on, before its own.
  void use_labels(MetricLabels labels) { shared_ = std::move(labels); }
  void counter(std::string_view name, std::string_view help, double value, const MetricLabels& labels = {});
  void gauge(std::string_view name, std::string_view help, double value, const MetricLabels& labels = {});
  // buckets: without that of all, which is `count`. sum: of what was seen.
  void histogram(std::string_view name, std::string_view help, std::span<const MetricBucket> buckets, uint64_t count,
                 double sum);
  std::string text() const;

 private:
  struct Family {
    std::string head;     // the lines HELP and TYPE
    std::string samples;  // a line each
  };
  std::string& samples_of(std::string_view name, std::string_view help, std::string_view type);
  std::string labels_with(const MetricLabels& own) const;

  MetricLabels shared_;
  std::map<std::string, size_t, std::less<>> places_;  // of families, by name
  std::vector<Family> families_;
};

}  // namespace candor::serve
