#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "obs/clock.h"
#include "obs/log.h"
#include "obs/metrics.h"

namespace candor::obs {
namespace {

class MemorySink final : public LogSink {
 public:
  void write(LogLevel level, std::string_view line) noexcept override {
    lines.push_back(std::string(level_name(level)) + ":" + std::string(line));
  }
  std::vector<std::string> lines;
};

TEST(log, messages_below_the_level_are_dropped) {
  MemorySink sink;
  const Log log(sink, LogLevel::kWarning);
  log.info("quiet");
  log.warning("loud");
  log.error("louder");
  EXPECT_EQ(sink.lines, (std::vector<std::string>{"warning:loud", "error:louder"}));
  const Log off(sink, LogLevel::kOff);
  off.error("never");
  EXPECT_EQ(sink.lines.size(), 2u);
}

TEST(log, a_message_can_not_forge_another_line) {
  MemorySink sink;
  const Log log(sink, LogLevel::kInfo);
  log.info("a\nerror: b\x1b[2J\t\xc3\xa9");
  ASSERT_EQ(sink.lines.size(), 1u);
  EXPECT_EQ(sink.lines[0], "info:a\\x0aerror: b\\x1b[2J\\x09\xc3\xa9");
}

TEST(log, a_level_is_read_by_name_and_nonsense_is_refused) {
  EXPECT_EQ(parse_log_level("warning").value(), LogLevel::kWarning);
  const auto refused = parse_log_level("lots");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "log level \"lots\" is unknown; expected info, warning, error or off");
}

TEST(histogram, every_value_lies_in_its_bucket_and_buckets_do_not_overlap) {
  for (size_t i = 0; i + 1 < Histogram::kBuckets; ++i) {
    EXPECT_EQ(Histogram::bucket_of(Histogram::bucket_upper(i)), i);
    EXPECT_EQ(Histogram::bucket_of(Histogram::bucket_upper(i) + 1), i + 1);
  }
  EXPECT_EQ(Histogram::bucket_of(UINT64_MAX), Histogram::kBuckets - 1);
}

TEST(histogram, quantiles_are_at_most_an_eighth_too_high) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 10000; ++value) histogram.record(value);
  for (const double q : {0.01, 0.5, 0.9, 0.99}) {
    const double exact = q * 10000;
    EXPECT_GE(static_cast<double>(histogram.quantile(q)), exact);
    EXPECT_LE(static_cast<double>(histogram.quantile(q)), exact * 1.125);
  }
  EXPECT_EQ(histogram.quantile(1.0), 10000u);
  EXPECT_DOUBLE_EQ(histogram.summary().mean(), 5000.5);
  EXPECT_EQ(Histogram().quantile(0.5), 0u);
}

TEST(histogram, increments_from_several_threads_are_all_counted) {
  Histogram histogram;
  Counter counter;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 5000; ++i) {
        histogram.record(i * (t + 1));
        counter.add();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.summary().count, 20000u);
  EXPECT_EQ(histogram.summary().max, 4999u * 4);
  EXPECT_EQ(counter.value(), 20000u);
}

TEST(clock, time_goes_forward) {
  const SteadyClock steady;
  const int64_t first = steady.now_ns();
  EXPECT_GE(steady.now_ns(), first);
  ManualClock manual;
  manual.advance_ns(5);
  EXPECT_EQ(manual.now_ns(), 5);
}

}  // namespace
}  // namespace candor::obs
