#include "platform/cpu_features.h"

#include <gtest/gtest.h>

namespace candor::platform {
namespace {

// Leaves of a Sapphire-Rapids-class server with everything that the table names.
CpuidLeaves server_leaves() {
  CpuidLeaves leaves;
  leaves.leaf1_ecx = (1u << 12) | (1u << 27) | (1u << 28) | (1u << 29);
  leaves.leaf7_ebx = (1u << 5) | (1u << 16) | (1u << 17) | (1u << 28) | (1u << 30) | (1u << 31);
  leaves.leaf7_ecx = 1u << 11;
  leaves.leaf7_edx = (1u << 22) | (1u << 24) | (1u << 25);
  leaves.leaf7_1_eax = (1u << 4) | (1u << 5);
  leaves.xcr0 = 0x602e7;
  return leaves;
}

TEST(cpu_features, a_server_with_tiles_is_recognised) {
  const CpuFeatures features = decode_cpuid(server_leaves());
  EXPECT_TRUE(features.avx2 && features.avx512 && features.avx512_vnni && features.avx512_bf16);
  EXPECT_TRUE(features.avx_vnni && features.amx_int8 && features.amx_bf16);
}

TEST(cpu_features, registers_that_the_system_does_not_save_are_not_used) {
  CpuidLeaves leaves = server_leaves();
  leaves.xcr0 = 0x7;
  EXPECT_TRUE(decode_cpuid(leaves).avx2);
  EXPECT_FALSE(decode_cpuid(leaves).avx512);
  EXPECT_FALSE(decode_cpuid(leaves).avx512_vnni);
  leaves.xcr0 = 0xe7;
  EXPECT_TRUE(decode_cpuid(leaves).avx512_vnni);
  EXPECT_FALSE(decode_cpuid(leaves).amx_int8);
  leaves.xcr0 = 0;
  EXPECT_EQ(to_string(decode_cpuid(leaves)), "none");
}

TEST(cpu_features, avx512_needs_all_of_its_parts) {
  for (const int bit : {16, 17, 28, 30, 31}) {
    CpuidLeaves leaves = server_leaves();
    leaves.leaf7_ebx &= ~(1u << bit);
    const CpuFeatures features = decode_cpuid(leaves);
    EXPECT_FALSE(features.avx512 || features.avx512_vnni || features.amx_int8) << bit;
    EXPECT_TRUE(features.avx2) << bit;
  }
}

TEST(cpu_features, this_machine_answers_the_same_twice) {
  EXPECT_EQ(detect_cpu_features(), detect_cpu_features());
  EXPECT_FALSE(detect_cpu_features().arch.empty());
}

}  // namespace
}  // namespace candor::platform
