#include "platform/huge_buffer.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

namespace candor::platform {
namespace {

TEST(huge_buffer, large_buffers_are_zeroed_and_aligned_to_a_huge_page) {
  auto buffer = HugeBuffer::allocate((size_t{5} << 20) + 3, "test");
  ASSERT_TRUE(buffer);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % (size_t{2} << 20), 0u);
  EXPECT_EQ(buffer->size(), (size_t{5} << 20) + 3);
  for (const std::byte b : buffer->bytes()) ASSERT_EQ(b, std::byte{0});
}

TEST(huge_buffer, moving_hands_the_memory_over) {
  auto first = HugeBuffer::allocate(1000, "test");
  ASSERT_TRUE(first);
  std::byte* data = first->data();
  HugeBuffer second = std::move(*first);
  EXPECT_EQ(second.data(), data);
  HugeBuffer third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), 1000u);
}

TEST(huge_buffer, an_impossible_size_is_an_error_that_names_the_use) {
  for (const size_t n : {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() / 8}) {
    const auto buffer = HugeBuffer::allocate(n, "K/V pages");
    ASSERT_FALSE(buffer);
    EXPECT_EQ(buffer.error().kind, ErrorKind::kOutOfMemory);
    EXPECT_NE(buffer.error().message.find("K/V pages"), std::string::npos);
  }
  EXPECT_TRUE(HugeBuffer::allocate(0, "nothing"));
}

}  // namespace
}  // namespace candor::platform
