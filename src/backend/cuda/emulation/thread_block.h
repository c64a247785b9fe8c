#pragma once
// Runs a kernel's blocks one after another on the calling thread. The threads of a block are fibers: one runs until it
// waits (for its block, for the lanes of its warp) or ends, and a kernel that never waits is a loop on one fiber.
// Fibers, shared memory and its shadow are reused. The first thing that a GPU would not do, or would do in no certain
// order, ends the launch with an error that names it.
//
// The words of language_host.h ask ThreadBlock::running() for where they are; it is set while run() runs.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/launch.h"
#include "backend/cuda/emulation/fiber.h"
#include "backend/cuda/emulation/mma.h"
#include "backend/cuda/emulation/shared_shadow.h"
#include "base/error.h"

namespace candor::backend::cuda::emulation {

// What a thread waits for.
enum class Wait : uint8_t { kNothing, kEnd, kBlock, kWarp, kShuffle, kBallot, kMma };

// What a lane brings to a meeting of its warp.
struct LaneOperands {
  uint32_t value = 0;   // shuffle, ballot
  uint32_t source = 0;  // shuffle: a lane
  MmaFragments mma{};   // in the lane's own memory; read and written when all lanes are there
};

class ThreadBlock {
 public:
  ThreadBlock();
  ~ThreadBlock();

  // Runs body() as each thread of each block. The error says what went wrong in which block of the kernel; nothing may
  // be run after one. REQUIRES: launch.n_threads a multiple of 32 of at most 1024.
  Result<void> run(const std::string& kernel, const Launch& launch, const std::function<void()>& body);

  static ThreadBlock& running() { return *running_; }

  uint32_t thread() const { return thread_; }
  const Launch& launch() const { return launch_; }
  uint32_t x() const { return x_; }
  uint32_t y() const { return y_; }
  uint32_t z() const { return z_; }

  const std::byte* read_shared(size_t offset, size_t n_bytes, size_t alignment) {
    check_place(offset, n_bytes, alignment);
    if (!shadow_.read(offset, n_bytes, accessor())) fail_access("reads", offset, n_bytes);
    return shared_ + offset;
  }
  std::byte* write_shared(size_t offset, size_t n_bytes, size_t alignment) {
    check_place(offset, n_bytes, alignment);
    if (!shadow_.write(offset, n_bytes, accessor())) fail_access("writes", offset, n_bytes);
    return shared_ + offset;
  }

  // Of global memory, for 16 bytes.
  void check_aligned(const void* source) {
    if (reinterpret_cast<uintptr_t>(source) % 16 != 0) [[unlikely]]
      fail_aligned(source);
  }

  void sync_block();
  // With the other lanes of the warp. Gives the lane's result.
  uint32_t meet(Wait kind, const LaneOperands& operands = {});

  void copy_async(size_t offset, const void* source);  // 16 bytes
  void commit_async();
  void wait_async(size_t n_groups_left);

 private:
  struct Copy {
    size_t offset;
    const void* source;
  };
  // Copies of a thread in the order of their issue.
  struct Copies {
    std::vector<Copy> issued;
    std::vector<size_t> group_ends;
    size_t n_arrived = 0;
    size_t n_groups_arrived = 0;
  };
  struct Warp {
    uint32_t epoch = 0;
    uint32_t n_arrived = 0;
    std::array<LaneOperands, 32> operands{};
    std::array<uint32_t, 32> results{};
  };

  void check_place(size_t offset, size_t n_bytes, size_t alignment) {
    if (offset > launch_.shared_bytes || n_bytes > launch_.shared_bytes - offset || offset % alignment != 0)
        [[unlikely]] {
      fail_place(offset, n_bytes, alignment);
    }
  }
  SharedShadow::Accessor accessor() const { return {thread_, epoch_, warps_[thread_ / 32].epoch}; }

  void run_block();
  void work(Fiber& self);
  void end_thread();
  Fiber& next_fiber();
  void suspend();
  void wake(uint32_t thread);
  void answer(Warp& warp, Wait kind);
  void explain_standstill();

  [[noreturn]] void fail(std::string what);
  [[noreturn]] void fail_place(size_t offset, size_t n_bytes, size_t alignment);
  [[noreturn]] void fail_aligned(const void* source);
  [[noreturn]] void fail_access(const char* verb, size_t offset, size_t n_bytes);
  void set_error(std::string what);

  inline static constinit thread_local ThreadBlock* running_ = nullptr;

  // Of the launch.
  Launch launch_{};
  std::string kernel_;
  const std::function<void()>* body_ = nullptr;
  std::string error_;

  // Of the block.
  uint32_t x_ = 0, y_ = 0, z_ = 0;
  uint32_t epoch_ = 0;
  uint32_t n_started_ = 0;
  uint32_t n_ended_ = 0;
  uint32_t n_at_barrier_ = 0;
  std::vector<Warp> warps_;
  std::vector<Copies> copies_;
  std::vector<Wait> waits_;
  std::vector<Fiber*> fiber_of_;
  std::array<uint16_t, 1024> ready_{};  // a ring: threads that may go on
  uint32_t ready_begin_ = 0;
  uint32_t ready_end_ = 0;

  std::byte* shared_ = nullptr;
  std::vector<std::byte> shared_memory_;
  SharedShadow shadow_;

  uint32_t thread_ = 0;  // that runs
  Fiber* fiber_ = nullptr;
  Fiber main_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

}  // namespace candor::backend::cuda::emulation
