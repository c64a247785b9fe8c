#include "backend/all/gpus.h"

#include <gtest/gtest.h>

namespace candor::backend {
namespace {

TEST(examine_gpus, says_something_of_each_card_or_why_there_is_none) {
  for (const GpuFinding& finding : examine_gpus()) {
    EXPECT_FALSE(finding.value.empty());
    EXPECT_EQ((finding.value + finding.problem).find('\n'), std::string::npos) << finding.value << finding.problem;
  }
}

}  // namespace
}  // namespace candor::backend
