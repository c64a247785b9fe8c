// The text format of Prometheus, as its documentation writes it.

#include "serve/core/metrics_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "candor/drafts.h"
#include "candor/info.h"
#include "serve/core/metrics_page.h"

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

TEST(metrics_page, drafts_are_told_by_who_makes_them) {
  DraftUsages drafts;
  serve::MetricsText none;
  serve::add_drafts(drafts, {}, none);
  EXPECT_EQ(none.text(), "");
  drafts[static_cast<size_t>(DraftSource::kMtp)] = {
      .n_steps = 3, .drafted_tokens = 9, .accepted_tokens = 6, .plain_ms = 300, .added_ms = 100, .saved_ms = 600};
  ModelInfo info;
  info.drafters = {DraftSource::kNgram, DraftSource::kMtp};
  info.costs.draft_ms = 2;
  serve::MetricsText metrics;
  metrics.use_labels({{"model", "m"}});
  serve::add_drafts(drafts, info, metrics);
  for (const char* line : {"candor_draft_steps_total{model=\"m\",drafter=\"ngram\"} 0",
                           "candor_draft_steps_total{model=\"m\",drafter=\"mtp\"} 3",
                           "candor_drafted_tokens_total{model=\"m\",drafter=\"mtp\"} 9",
                           "candor_accepted_tokens_total{model=\"m\",drafter=\"mtp\"} 6",
                           "candor_draft_plain_seconds_total{model=\"m\",drafter=\"mtp\"} 0.3",
                           "candor_draft_added_seconds_total{model=\"m\",drafter=\"mtp\"} 0.1",
                           "candor_draft_saved_seconds_total{model=\"m\",drafter=\"mtp\"} 0.6",
                           "candor_draft_seconds{model=\"m\",drafter=\"ngram\"} 0",
                           "candor_draft_seconds{model=\"m\",drafter=\"mtp\"} 0.002"}) {
    EXPECT_NE(metrics.text().find(line), std::string::npos) << line << " is not in\n" << metrics.text();
  }
  EXPECT_EQ(metrics.text().find("eagle"), std::string::npos);
}

TEST(metrics_page, a_device_has_figures_and_a_machine_without_one_has_none) {
  serve::MetricsText none;
  serve::add_device({}, none);
  EXPECT_EQ(none.text(), "");
  serve::MetricsText metrics;
  metrics.use_labels({{"model", "m"}});
  serve::add_device({.name = "Card 1",
                     .memory_bytes = 100,
                     .free_bytes = 30,
                     .weight_bytes = 40,
                     .kv_bytes = 20,
                     .work_bytes = 10,
                     .copied_in_bytes = 7,
                     .copied_out_bytes = 8,
                     .launches = 9,
                     .graph_launches = 11},
                    metrics);
  const std::string text = metrics.text();
  const std::string labels = "{model=\"m\",device=\"Card 1\"";
  for (const std::string& line :
       {"candor_device_memory_bytes" + labels + "} 100", "candor_device_memory_free_bytes" + labels + "} 30",
        "candor_device_memory_used_bytes" + labels + ",use=\"weights\"} 40",
        "candor_device_memory_used_bytes" + labels + ",use=\"kv\"} 20",
        "candor_device_memory_used_bytes" + labels + ",use=\"work\"} 10",
        "candor_device_copied_bytes_total" + labels + ",direction=\"in\"} 7",
        "candor_device_copied_bytes_total" + labels + ",direction=\"out\"} 8",
        "candor_device_launches_total" + labels + ",of=\"kernel\"} 9",
        "candor_device_launches_total" + labels + ",of=\"graph\"} 11"}) {
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << " is not in:\n" << text;
  }
}

}  // namespace
}  // namespace candor::testing
