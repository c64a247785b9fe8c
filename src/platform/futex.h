#pragma once
// Waiting in the kernel for a 32-bit word to change: of this process, or of memory that processes share.

#include <atomic>
#include <cstdint>

namespace candor::platform {

// Sleeps while word == seen; may also return for no reason. The comparison is made by the kernel, under its own lock.
void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) noexcept;

// Wakes every thread that sleeps on the word.
void futex_wake_all(std::atomic<uint32_t>& word) noexcept;

// The same of a word in memory that processes share; returns at the latest after timeout_ns.
void futex_wait_shared(std::atomic<uint32_t>& word, uint32_t seen, int64_t timeout_ns) noexcept;
void futex_wake_shared(std::atomic<uint32_t>& word) noexcept;

// Tells the processor that this thread spins.
void spin_pause() noexcept;

}  // namespace candor::platform
