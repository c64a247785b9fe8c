#include "platform/futex.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#else
#include <chrono>
#include <thread>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace candor::platform {

#if defined(__linux__)
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void futex_wait_shared(std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) noexcept {
  const timespec timeout{.tv_sec = timeout_ns / 1'000'000'000, .tv_nsec = timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake_shared(std::atomic<uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
#else
void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) noexcept {
  word.wait(seen);
}
void futex_wake_all(std::atomic<uint32_t>& word) noexcept {
  word.notify_all();
}
void futex_wait_shared(std::atomic<uint32_t>&, uint32_t, int64_t) noexcept {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}
void futex_wake_shared(std::atomic<uint32_t>&) noexcept {}
#endif

void spin_pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace candor::platform
