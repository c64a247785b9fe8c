// The text format of Prometheus, as its documentation writes it.

#include "serve/core/metrics_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace candor::testing {
namespace {

TEST(metrics_text, families_have_a_head_and_their_samples) {
  serve::MetricsText metrics;
  metrics.counter("a_total", "All of a", 3);
  metrics.gauge("b", "One b", 0.1);
  metrics.counter("a_total", "", 1e16, {{"kind", "other"}});
  EXPECT_EQ(metrics.text(),
            "# HELP a_total All of a\n# TYPE a_total counter\na_total 3\na_total{kind=\"other\"} 1e+16\n"
            "# HELP b One b\n# TYPE b gauge\nb 0.1\n");
}

TEST(metrics_text, histograms_end_with_all_that_was_seen) {
  serve::MetricsText metrics;
  metrics.use_labels({{"model", "m"}});
  const serve::MetricBucket buckets[] = {{0.5, 1}, {2, 3}};
  metrics.histogram("h", "Seconds", buckets, 4, 7.25);
  EXPECT_EQ(
      metrics.text(),
      "# HELP h Seconds\n# TYPE h histogram\nh_count{model=\"m\"} 4\nh_sum{model=\"m\"} 7.25\n"
      "h_bucket{model=\"m\",le=\"0.5\"} 1\nh_bucket{model=\"m\",le=\"2\"} 3\nh_bucket{model=\"m\",le=\"+Inf\"} 4\n");
}

TEST(metrics_text, what_a_client_could_choose_is_escaped) {
  serve::MetricsText metrics;
  metrics.use_labels({{"model", "a\"b\\c\nd"}});
  metrics.gauge("g", "one\ntwo \\ \"three\"", std::numeric_limits<double>::infinity());
  metrics.gauge("n", "none", std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(metrics.text(),
            "# HELP g one\\ntwo \\\\ \"three\"\n# TYPE g gauge\ng{model=\"a\\\"b\\\\c\\nd\"} +Inf\n"
            "# HELP n none\n# TYPE n gauge\nn{model=\"a\\\"b\\\\c\\nd\"} NaN\n");
}

}  // namespace
}  // namespace candor::testing
