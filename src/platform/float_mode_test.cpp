#include "platform/float_mode.h"

#include <gtest/gtest.h>

namespace candor::platform {
namespace {

TEST(float_mode, denormals_are_zero_inside_the_scope_and_back_after_it) {
  volatile float tiny = 0x1p-126f;
  volatile float half = 0.5f;
  ASSERT_FALSE(float_mode_is_set());
  {
    const ScopedFloatMode mode;
    EXPECT_TRUE(float_mode_is_set());
    const volatile float flushed = tiny * half;
    EXPECT_EQ(flushed, 0.0f);
    const ScopedFloatMode nested;
    EXPECT_TRUE(float_mode_is_set());
  }
  EXPECT_FALSE(float_mode_is_set());
  const volatile float kept = tiny * half;
  EXPECT_GT(kept, 0.0f);
}

}  // namespace
}  // namespace candor::platform
