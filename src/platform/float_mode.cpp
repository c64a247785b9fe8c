#include "platform/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace candor::platform {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlushBits = 0x8040;     // FTZ and DAZ
constexpr uint64_t kRoundingBits = 0x6000;  // both clear: to nearest even
uint64_t read_mode() {
  return _mm_getcsr();
}
void write_mode(uint64_t mode) {
  _mm_setcsr(static_cast<uint32_t>(mode));
}
#elif defined(__aarch64__)
constexpr uint64_t kFlushBits = uint64_t{1} << 24;     // FZ
constexpr uint64_t kRoundingBits = uint64_t{3} << 22;  // RMode
uint64_t read_mode() {
  uint64_t mode = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void write_mode(uint64_t mode) {
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
constexpr uint64_t kFlushBits = 0;
constexpr uint64_t kRoundingBits = 0;
uint64_t read_mode() {
  return 0;
}
void write_mode(uint64_t) {}
#endif

constexpr uint64_t wanted(uint64_t mode) {
  return (mode | kFlushBits) & ~kRoundingBits;
}

}  // namespace

ScopedFloatMode::ScopedFloatMode() noexcept : saved_(read_mode()) {
  if (wanted(saved_) != saved_) write_mode(wanted(saved_));
}

ScopedFloatMode::~ScopedFloatMode() noexcept {
  if (wanted(saved_) != saved_) write_mode(saved_);
}

bool float_mode_is_set() noexcept {
  return wanted(read_mode()) == read_mode();
}

}  // namespace candor::platform
