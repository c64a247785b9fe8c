// The line of a progress bar.

#include <gtest/gtest.h>

#include "apps/terminal/progress_line.h"

namespace candor::testing {
namespace {

using namespace candor::apps;

TEST(progress, says_how_far_how_fast_and_how_long_yet) {
  EXPECT_EQ(progress_line("writing", 800'000'000, 2'000'000'000, 2, 100),
            "writing [============                  ]  40 % of 2.00 GB, 400.0 MB/s, 3 s left");
  EXPECT_EQ(progress_line("reading", 5'000, 20'000, 10, 100, ProgressUnit::kTokens),
            "reading [=======                       ]  25 % of 20 000 tokens, 500 tok/s, 30 s left");
  EXPECT_EQ(progress_line("writing", 2'000'000'000, 2'000'000'000, 2, 100),
            "writing [==============================] 100 % of 2.00 GB, 1.00 GB/s, 0 s left");
}

TEST(progress, tells_no_time_before_anything_is_done) {
  EXPECT_EQ(progress_line("writing", 0, 2'000'000'000, 2, 100).find("left"), std::string::npos);
}

TEST(progress, fits_into_the_columns_of_the_terminal) {
  for (size_t n_columns = 0; n_columns < 120; ++n_columns) {
    const std::string line = progress_line("a-name-of-a-file-q4_k_m.gguf", 7'000'000, 9'000'000, 1, n_columns);
    EXPECT_LE(line.size(), n_columns) << line;
  }
}

TEST(progress, more_than_all_of_it_is_all) {
  EXPECT_NE(progress_line("writing", 3'000, 2'000, 1, 80).find("100 %"), std::string::npos);
}

TEST(progress, times_are_read_at_a_glance) {
  EXPECT_EQ(time_left(7.2), "8 s");
  EXPECT_EQ(time_left(125), "2 min 05 s");
  EXPECT_EQ(time_left(4'800), "1 h 20 min");
  EXPECT_EQ(time_left(1e30), "99 h 00 min");
}

}  // namespace
}  // namespace candor::testing
