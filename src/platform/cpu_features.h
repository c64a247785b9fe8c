#pragma once
// What this processor can run, with the operating system's support checked (XGETBV: a CPU may have AVX-512 registers
// that the kernel does not save). Plain values: detect once at start and pass the struct on. Fields of
// another architecture stay false; `arch` says which this is.

#include <cstdint>
#include <string>

namespace candor::platform {

struct CpuFeatures {
  std::string arch;   // "x86-64", "aarch64", ...
  std::string brand;  // as the processor names itself; may be empty
  bool avx2 = false;  // with FMA and F16C
  bool avx_vnni = false;
  bool avx512 = false;  // F, BW, DQ, VL and CD together
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx_int8 = false;  // with AMX-TILE; usable after request_amx_tiles()
  bool amx_bf16 = false;
  bool neon_i8mm = false;  // Arm: the products of int8 matrices of Armv8.6-A
  bool neon_dot = false;  // Arm: the dot products of Armv8.2-A; NEON itself every aarch64 has
  bool operator==(const CpuFeatures&) const = default;
};

// The registers that the features are read from, so that tests can feed other machines' values.
struct CpuidLeaves {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;
  uint64_t xcr0 = 0;  // 0 where the system does not use XSAVE
};

CpuFeatures decode_cpuid(const CpuidLeaves& leaves);

// This machine. Any thread; costs a few microseconds.
CpuFeatures detect_cpu_features();

// "AVX2 AVX-512 VNNI", or "none".
std::string to_string(const CpuFeatures& features);

// Asks the kernel for the tile registers, which Linux grants per process. False where it refuses.
bool request_amx_tiles();

}  // namespace candor::platform
