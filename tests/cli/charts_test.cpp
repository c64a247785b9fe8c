// Pictures and pages of the benchmarks: what stands in them, and that words do not lie on one another.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/charts/line_chart.h"
#include "apps/charts/report_page.h"
#include "apps/charts/scale.h"
#include "apps/charts/timeline.h"
#include "program.h"

namespace candor::testing {
namespace {

using namespace candor::apps;

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// y of every word whose x is beyond `left`, ascending.
std::vector<double> heights_beyond(const std::string& svg, double left) {
  const std::string mark = "<text x=\"";
  std::vector<double> heights;
  for (size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
    const size_t y = svg.find("y=\"", at + mark.size());
    if (std::stod(svg.substr(at + mark.size(), 12)) > left) heights.push_back(std::stod(svg.substr(y + 3, 12)));
  }
  std::ranges::sort(heights);
  return heights;
}

TEST(charts, round_numbers_span_what_was_measured) {
  const RoundScale linear = linear_scale(0, 93);
  EXPECT_EQ(linear.low, 0);
  EXPECT_GE(linear.high, 93);
  EXPECT_LE(linear.names.size(), 8u);
  const RoundScale wide = log_scale(0.3, 4000);
  EXPECT_LE(wide.low, 0.3);
  EXPECT_GE(wide.high, 4000);
  EXPECT_LE(wide.names.size(), 8u);
  const RoundScale flat = log_scale(5, 5);
  EXPECT_GT(flat.high, flat.low);
  EXPECT_EQ(short_number(20000), "20k");
  EXPECT_EQ(short_number(0.5), "0.5");
}

TEST(charts, names_of_lines_do_not_overlap_even_where_the_lines_do) {
  LineChart chart{"Speed", "tokens", {1, 2}, {}};
  for (int i = 0; i < 12; ++i) chart.lines.push_back({"line " + std::to_string(i), {{1, 50}, {2, 50.0 + 0.1 * i}}});
  const auto heights = heights_beyond(draw(chart).document(), 640);
  ASSERT_EQ(heights.size(), 12u);
  for (size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 14) << i;
  EXPECT_LE(heights.back(), 300);
}

TEST(charts, an_axis_is_logarithmic_where_a_limit_dwarfs_the_curve) {
  const auto chart = [](double limit) {
    return draw({"Speed",
                 "tokens",
                 {1, 2},
                 {{"measured", {{1, 5}, {2, 9}}},
                  {"limit", {{1, limit}, {2, limit}}, Ink::kQuiet, Stroke::kDashed, false}}})
        .document();
  };
  EXPECT_EQ(chart(20).find("logarithmic"), std::string::npos);
  EXPECT_NE(chart(2000).find("logarithmic"), std::string::npos);
  EXPECT_NE(chart(20).find("stroke-dasharray"), std::string::npos);
}

TEST(charts, words_from_outside_stay_words) {
  LineChart chart{"<script>\"&", "x", {}, {{"a < b", {{0, 1}, {1, 2}}}}};
  const std::string svg = draw(chart).document();
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  const std::string html =
      to_html({"<b>", {{"model", "<i>.gguf"}}, {{"t", {"c"}, {{"<td>"}}}}, {}, "{\"a\": \"</pre>\"}"});
  for (const char* tag : {"<b>", "<i>", "</pre>\""}) EXPECT_EQ(html.find(tag), std::string::npos) << tag;
}

TEST(charts, nothing_measured_is_said) {
  EXPECT_NE(draw(LineChart{"Speed", "tokens", {}, {}}).document().find("nothing was measured"), std::string::npos);
  EXPECT_NE(draw(Timeline{"Load", true, {}}).document().find("<svg"), std::string::npos);
}

TEST(charts, a_timeline_has_a_bar_for_each_part_and_stays_on_the_paper) {
  Timeline timeline{"Load", true, {}};
  for (int i = 0; i < 2000; ++i)
    timeline.rows.push_back({0.1 * i, 0.1 * i + 1, 0.1 * i + 2, 0.1 * i + 3, {}, i % 2 == 0});
  const Svg many = draw(timeline);
  EXPECT_LT(many.height(), 2200);
  timeline.rows.resize(2);
  EXPECT_EQ(count(draw(timeline).document(), "<rect"), 1 + 4 + 3 + 1) << "paper, legend, three parts, one that failed";
}

class Reports : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("candor-charts-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::string read(const char* name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::filesystem::path folder_;
};

void expect_needs_nothing_else(const std::string& html) {
  EXPECT_EQ(count(html, "<!doctype html>"), 1);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("href="), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST_F(Reports, generate_draws_prefill_decode_and_latency_with_and_without_the_cache) {
  const RunResult result = run_candor({"bench", "generate", "--prompt", "16,64", "--new", "3", "-r", "1",
                                       "--no-kv-cache", "--svg", path("plot.svg"), "--html", path("report.html")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count_lines(result.out), 2 + 4);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  const std::string svg = read("plot.svg");
  for (const char* words : {"Prefill, tokens a second", "Decode, tokens a second", "Latency, ms", "batch 1 no cache",
                            "limit: int8 arithmetic", "limit: DRAM", "limit: a read of the weights"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  const std::string html = read("report.html");
  expect_needs_nothing_else(html);
  EXPECT_EQ(count(html, "<svg"), 3);
  EXPECT_EQ(count(html, "<tr>"), 1 + 4);
}

TEST_F(Reports, serve_draws_every_request_of_a_load) {
  const RunResult result = run_candor({"bench", "serve", "--in-process", "--requests", "5", "--prompt", "20", "--new",
                                       "6", "--svg", path("load.svg"), "--html", path("load.html")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string svg = read("load.svg");
  for (const char* words : {"Every request", "reads its prompt", "decodes", "Tokens a second", "waiting"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  expect_needs_nothing_else(read("load.html"));
  EXPECT_NE(read("load.html").find("TTFT"), std::string::npos);
}

TEST_F(Reports, a_file_that_cannot_be_written_is_told_before_anything_is_measured) {
  for (const char* option : {"--svg", "--html"}) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"bench", "generate", "-r", "1000"},
                                                    {"bench", "serve", "--in-process", "--requests", "100000"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {option, path("no/such/folder/x")});
      const RunResult result = run_candor(arguments);
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_NE(result.err.find("no/such/folder/x"), std::string::npos) << result.err;
    }
  }
}

}  // namespace
}  // namespace candor::testing
