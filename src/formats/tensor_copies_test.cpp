#include "formats/tensor_copies.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>

namespace candor::formats {
namespace {

constexpr size_t kBytes = size_t{5} << 20;

// Writes the number of times that it has written.
CopySource counting(int& n_writes) {
  return {[&n_writes](std::byte* to) -> Result<void> {
    std::memset(to, ++n_writes, kBytes);
    return {};
  }};
}

TEST(tensor_copies, are_made_when_they_are_read_and_again_only_where_they_were_released) {
  TensorCopies copies;
  int n_writes = 0;
  const auto added = copies.add(kBytes, "a", counting(n_writes));
  ASSERT_TRUE(added);
  const std::span bytes(*added, kBytes);
  EXPECT_EQ(n_writes, 0);
  const std::span first = bytes.first(kBytes / 2), second = bytes.subspan(kBytes / 2);
  EXPECT_TRUE(*copies.make(first));
  copies.release(first);
  EXPECT_FALSE(*copies.make(second)) << "it stands still";
  EXPECT_EQ(second.front(), std::byte{1});
  EXPECT_EQ(second.back(), std::byte{1});
  copies.release(second);
  EXPECT_EQ(second.back(), std::byte{0}) << "its pages are gone";
  EXPECT_TRUE(*copies.make(first));
  EXPECT_EQ(n_writes, 2);
  EXPECT_EQ(first.front(), std::byte{2});
}

TEST(tensor_copies, count_what_stands_and_the_largest_of_those_that_come_and_go) {
  TensorCopies copies;
  int n_writes = 0;
  ASSERT_TRUE(copies.add(100, "vector"));
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(copies.add(kBytes, name, counting(n_writes)));
  EXPECT_EQ(copies.n_bytes(), kBytes + 100);
}

TEST(tensor_copies, leave_alone_what_stands_and_what_is_not_theirs) {
  TensorCopies copies;
  const auto standing = copies.add(kBytes, "vector");
  ASSERT_TRUE(standing);
  (*standing)[0] = std::byte{7};
  const std::array<std::byte, 4> other{};
  for (const std::span<const std::byte> part :
       {std::span<const std::byte>(*standing, kBytes), std::span<const std::byte>(other)}) {
    EXPECT_FALSE(*copies.make(part));
    EXPECT_EQ(copies.source_of(part), nullptr);
    copies.release(part);
  }
  EXPECT_EQ((*standing)[0], std::byte{7});
}

TEST(tensor_copies, are_read_for_by_reading_what_they_are_made_of) {
  TensorCopies copies;
  const std::array<std::byte, 4> codes{}, scales{}, other{};
  CopySource source{[](std::byte*) -> Result<void> { return {}; }, {codes, scales}};
  const auto added = copies.add(8, "a", std::move(source));
  ASSERT_TRUE(added);
  const auto read = copies.read_for({*added + 2, 4});
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].data(), codes.data());
  EXPECT_EQ(read[1].data(), scales.data());
  const auto itself = copies.read_for(other);
  ASSERT_EQ(itself.size(), 1u);
  EXPECT_EQ(itself[0].data(), other.data()) << "it lies in no copy";
}

TEST(tensor_copies, an_error_of_writing_is_told_and_tried_again) {
  TensorCopies copies;
  int n_tries = 0;
  const auto added = copies.add(8, "a", {[&n_tries](std::byte*) -> Result<void> {
                                  if (++n_tries == 1) return fail(ErrorKind::kInvalidInput, "not finite");
                                  return {};
                                }});
  ASSERT_TRUE(added);
  const auto failed = copies.make({*added, 8});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "not finite");
  EXPECT_TRUE(*copies.make({*added, 8}));
}

}  // namespace
}  // namespace candor::formats
