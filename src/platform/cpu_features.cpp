#include "platform/cpu_features.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace candor::platform {
namespace {

constexpr bool has_bit(uint64_t word, int bit) {
  return ((word >> bit) & 1u) != 0;
}

// State components of XCR0: SSE and AVX; opmask, upper ZMM and ZMM16-31; tile configuration and data.
constexpr uint64_t kAvxState = 0x6;
constexpr uint64_t kAvx512State = 0xe6;
constexpr uint64_t kAmxState = 0x60000;

bool has_state(uint64_t xcr0, uint64_t wanted) {
  return (xcr0 & wanted) == wanted;
}

#if defined(__x86_64__)
uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

CpuidLeaves read_cpuid() {
  CpuidLeaves leaves;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) leaves.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    const uint32_t last_subleaf = eax;
    leaves.leaf7_ebx = ebx;
    leaves.leaf7_ecx = ecx;
    leaves.leaf7_edx = edx;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) leaves.leaf7_1_eax = eax;
  }
  constexpr int kOsXsave = 27;
  if (has_bit(leaves.leaf1_ecx, kOsXsave)) leaves.xcr0 = read_xcr0();
  return leaves;
}

std::string read_brand() {
  char text[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    uint32_t words[4] = {};
    if (__get_cpuid(0x80000002u + i, &words[0], &words[1], &words[2], &words[3]) == 0) return {};
    std::memcpy(text + 16 * i, words, sizeof(words));
  }
  return text;
}
#endif

}  // namespace

CpuFeatures decode_cpuid(const CpuidLeaves& leaves) {
  CpuFeatures features;
  features.arch = "x86-64";
  const bool avx_state = has_state(leaves.xcr0, kAvxState);
  const bool fma = has_bit(leaves.leaf1_ecx, 12);
  const bool f16c = has_bit(leaves.leaf1_ecx, 29);
  features.avx2 = avx_state && fma && f16c && has_bit(leaves.leaf7_ebx, 5);
  features.avx_vnni = features.avx2 && has_bit(leaves.leaf7_1_eax, 4);

  bool avx512 = features.avx2 && has_state(leaves.xcr0, kAvx512State);
  for (const int bit : {16, 17, 28, 30, 31}) avx512 = avx512 && has_bit(leaves.leaf7_ebx, bit);  // F DQ CD BW VL
  features.avx512 = avx512;
  features.avx512_vnni = avx512 && has_bit(leaves.leaf7_ecx, 11);
  features.avx512_bf16 = avx512 && has_bit(leaves.leaf7_1_eax, 5);

  const bool tiles = avx512 && has_state(leaves.xcr0, kAmxState) && has_bit(leaves.leaf7_edx, 24);
  features.amx_bf16 = tiles && has_bit(leaves.leaf7_edx, 22);
  features.amx_int8 = tiles && has_bit(leaves.leaf7_edx, 25);
  return features;
}

CpuFeatures detect_cpu_features() {
#if defined(__x86_64__)
  CpuFeatures features = decode_cpuid(read_cpuid());
  features.brand = read_brand();
  return features;
#elif defined(__aarch64__)
  CpuFeatures features;
  features.arch = "aarch64";
#if defined(__linux__)
  constexpr int kAsimdDotProduct = 20;  // HWCAP_ASIMDDP
  constexpr int kInt8MatrixProduct = 13;  // HWCAP2_I8MM
  features.neon_dot = has_bit(getauxval(AT_HWCAP), kAsimdDotProduct);
  features.neon_i8mm = has_bit(getauxval(AT_HWCAP2), kInt8MatrixProduct);
#endif
  return features;
#else
  CpuFeatures features;
  features.arch = "other";
  return features;
#endif
}

std::string to_string(const CpuFeatures& features) {
  struct Named {
    bool present;
    const char* name;
  };
  const Named table[] = {
      {features.avx2, "AVX2"},
      {features.avx_vnni, "AVX-VNNI"},
      {features.avx512, "AVX-512"},
      {features.avx512_vnni, "AVX-512-VNNI"},
      {features.avx512_bf16, "AVX-512-BF16"},
      {features.amx_int8, "AMX-INT8"},
      {features.amx_bf16, "AMX-BF16"},
      {features.neon_dot, "NEON-DOT"},
      {features.neon_i8mm, "NEON-I8MM"},
  };
  std::string text;
  for (const Named& row : table) {
    if (!row.present) continue;
    if (!text.empty()) text += ' ';
    text += row.name;
  }
  return text.empty() ? "none" : text;
}

bool request_amx_tiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace candor::platform
