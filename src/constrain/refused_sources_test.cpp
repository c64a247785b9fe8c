#include "constrain/refused_sources.h"

#include <gtest/gtest.h>

namespace candor::constrain {
namespace {

TEST(RefusedSources, are_told_apart_by_kind_and_text) {
  RefusedSources refused;
  refused.add(1, "a", {ErrorKind::kInvalidInput, "no a"});
  refused.add(2, "b", {ErrorKind::kUnsupported, "no b"});
  EXPECT_EQ(refused.find(1, "a")->message, "no a");
  EXPECT_EQ(refused.find(2, "b")->message, "no b");
  EXPECT_FALSE(refused.find(2, "a"));
  EXPECT_FALSE(refused.find(1, "ab"));
}

TEST(RefusedSources, of_a_moment_are_not_kept) {
  RefusedSources refused;
  for (const ErrorKind kind :
       {ErrorKind::kBusy, ErrorKind::kOutOfMemory, ErrorKind::kCancelled, ErrorKind::kInternal}) {
    refused.add(1, "a", {kind, "not now"});
    EXPECT_FALSE(refused.find(1, "a"));
  }
}

TEST(RefusedSources, leave_from_the_oldest_on_where_there_are_many_or_large_ones) {
  RefusedSources refused;
  const Error error{ErrorKind::kInvalidInput, "no"};
  for (int i = 0; i < 300; ++i) refused.add(1, std::to_string(i), error);
  EXPECT_FALSE(refused.find(1, "0"));
  EXPECT_FALSE(refused.find(1, "43"));
  EXPECT_TRUE(refused.find(1, "44"));
  for (char c = 'a'; c < 'd'; ++c) refused.add(1, std::string(size_t{3} << 20, c), error);
  EXPECT_FALSE(refused.find(1, "299"));
  EXPECT_FALSE(refused.find(1, std::string(size_t{3} << 20, 'a')));
  EXPECT_TRUE(refused.find(1, std::string(size_t{3} << 20, 'b')));
  refused.add(1, std::string(size_t{9} << 20, 'e'), error);
  EXPECT_TRUE(refused.find(1, std::string(size_t{3} << 20, 'c')));
}

}  // namespace
}  // namespace candor::constrain
