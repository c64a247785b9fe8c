#pragma once
// Seeded damage to files, and the guards under which loaders meet it.

#include <sys/resource.h>
#include <sys/time.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "support/random_weights.h"

namespace candor::testing {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return bytes_of(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Flipping the same bit twice restores the bytes. REQUIRES: bit < 8 x bytes.size().
inline void flip_bit(std::span<std::byte> bytes, uint64_t bit) {
  bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
}

// n bits of a file; every other one lies in its first `header_bytes`.
inline std::vector<uint64_t> bits_to_flip(size_t n, size_t header_bytes, size_t n_bytes, uint64_t seed) {
  SplitMix rng(seed);
  std::vector<uint64_t> bits(n);
  for (size_t i = 0; i < n; ++i) bits[i] = rng.below(8 * (i % 2 == 0 ? header_bytes : n_bytes));
  return bits;
}

// "ok", or the error's kind and message: what must be the same every time.
template <class T>
std::string verdict(const Result<T>& result) {
  if (result) return "ok";
  return std::to_string(static_cast<int>(result.error().kind)) + " " + result.error().message;
}

// Ends the process by SIGPROF when the code between takes more CPU time than this, as a hang would. On an emulated
// processor CANDOR_TEST_SLOWER says how many times as much.
class CpuTimeLimit {
 public:
  explicit CpuTimeLimit(int seconds) { set(seconds); }
  CpuTimeLimit(const CpuTimeLimit&) = delete;
  CpuTimeLimit& operator=(const CpuTimeLimit&) = delete;
  ~CpuTimeLimit() { set(0); }

 private:
  static void set(int seconds) {
    itimerval timer{};
#ifdef CANDOR_SANITIZED
    seconds *= 8;  // as FuzzBudget has it
#endif
    const char* slower = std::getenv("CANDOR_TEST_SLOWER");
    timer.it_value.tv_sec = slower == nullptr ? seconds : seconds * std::atoi(slower);
    setitimer(ITIMER_PROF, &timer, nullptr);
  }
};

// While it lives, the process cannot take `more_bytes` beyond what it has; new throws. Sanitizers reserve address space
// of their own, so under them it does nothing.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t more_bytes) {
    getrlimit(RLIMIT_AS, &before_);
#ifndef CANDOR_SANITIZED
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * 4096 + more_bytes;
    setrlimit(RLIMIT_AS, &limit);
#else
    static_cast<void>(more_bytes);
#endif
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit() {
    setrlimit(RLIMIT_AS, &before_);
  }

 private:
  rlimit before_{};
};

}  // namespace candor::testing
