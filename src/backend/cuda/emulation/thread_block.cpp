#include "backend/cuda/emulation/thread_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "platform/float_mode.h"

namespace candor::backend::cuda::emulation {

namespace {

const char* word_of(Wait wait) {
  switch (wait) {
    case Wait::kBlock:
      return "sync_block";
    case Wait::kWarp:
      return "sync_warp";
    case Wait::kShuffle:
      return "shuffle";
    case Wait::kBallot:
      return "ballot";
    case Wait::kMma:
      return "mma_s8";
    case Wait::kNothing:
    case Wait::kEnd:
      break;
  }
  return "";
}

std::string describe(Wait wait) {
  return wait == Wait::kEnd ? "ended" : fmt::format("wait at {}", word_of(wait));
}

}  // namespace

ThreadBlock::ThreadBlock() = default;
ThreadBlock::~ThreadBlock() = default;

Result<void> ThreadBlock::run(const std::string& kernel, const Launch& launch, const std::function<void()>& body) {
  const platform::ScopedFloatMode float_mode;
  launch_ = launch;
  kernel_ = kernel;
  body_ = &body;
  warps_.resize(launch.n_threads / 32);
  waits_.resize(launch.n_threads);
  fiber_of_.resize(launch.n_threads);
  if (copies_.size() < launch.n_threads) copies_.resize(launch.n_threads);
  shadow_.resize(launch.shared_bytes);
  shared_memory_.resize(std::max<size_t>(shared_memory_.size(), launch.shared_bytes + size_t{16}));
  shared_ = shared_memory_.data() + (16 - reinterpret_cast<uintptr_t>(shared_memory_.data()) % 16) % 16;
  running_ = this;
  for (z_ = 0; z_ < launch.z && error_.empty(); ++z_) {
    for (y_ = 0; y_ < launch.y && error_.empty(); ++y_) {
      for (x_ = 0; x_ < launch.x && error_.empty(); ++x_) run_block();
    }
  }
  running_ = nullptr;
  if (!error_.empty()) return candor::fail(ErrorKind::kInternal, error_);
  return {};
}

void ThreadBlock::run_block() {
  ++epoch_;
  n_started_ = 0;
  n_ended_ = 0;
  std::memset(shared_, 0xff, launch_.shared_bytes);
  fiber_ = &main_;
  Fiber& worker = next_fiber();
  fiber_ = &worker;
  main_.switch_to(worker);
  if (error_.empty() && n_ended_ < launch_.n_threads) explain_standstill();
}

// Of each fiber: starts threads while there are some. Those that wait keep their fiber.
void ThreadBlock::work(Fiber& self) {
  for (;;) {
    while (n_started_ < launch_.n_threads) {
      thread_ = n_started_++;
      waits_[thread_] = Wait::kNothing;
      (*body_)();
      end_thread();
    }
    idle_.push_back(&self);
    Fiber& next = next_fiber();
    if (&next == &self) continue;
    fiber_ = &next;
    self.switch_to(next);
  }
}

void ThreadBlock::end_thread() {
  waits_[thread_] = Wait::kEnd;
  ++n_ended_;
  Copies& copies = copies_[thread_];
  if (copies.n_arrived < copies.issued.size()) fail("ends before its asynchronous copies arrived (wait_async<0>)");
  copies.issued.clear();
  copies.n_arrived = 0;
  copies.group_ends.clear();
  copies.n_groups_arrived = 0;
}

Fiber& ThreadBlock::next_fiber() {
  if (ready_begin_ != ready_end_) return *fiber_of_[ready_[ready_begin_++ % ready_.size()]];
  if (n_started_ == launch_.n_threads) return main_;
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(
        [](void* block, Fiber& self) { static_cast<ThreadBlock*>(block)->work(self); }, this, fibers_.size()));
    return *fibers_.back();
  }
  Fiber& idle = *idle_.back();
  idle_.pop_back();
  return idle;
}

void ThreadBlock::suspend() {
  const uint32_t self = thread_;
  Fiber& mine = *fiber_;
  fiber_of_[self] = &mine;
  fiber_ = &next_fiber();
  mine.switch_to(*fiber_);
  thread_ = self;
}

void ThreadBlock::wake(uint32_t thread) {
  waits_[thread] = Wait::kNothing;
  if (thread != thread_) ready_[ready_end_++ % ready_.size()] = static_cast<uint16_t>(thread);
}

void ThreadBlock::sync_block() {
  waits_[thread_] = Wait::kBlock;
  if (++n_at_barrier_ < launch_.n_threads) return suspend();
  n_at_barrier_ = 0;
  ++epoch_;
  for (uint32_t i = 0; i < launch_.n_threads; ++i) wake(i);
}

uint32_t ThreadBlock::meet(Wait kind, const LaneOperands& operands) {
  Warp& warp = warps_[thread_ / 32];
  const uint32_t lane = thread_ % 32;
  warp.operands[lane] = operands;
  waits_[thread_] = kind;
  if (++warp.n_arrived < 32) {
    suspend();
  } else {
    answer(warp, kind);
  }
  return warp.results[lane];
}

// All lanes are there.
void ThreadBlock::answer(Warp& warp, Wait kind) {
  const uint32_t first = thread_ / 32 * 32;
  for (uint32_t i = first; i < first + 32; ++i) {
    if (waits_[i] != kind)
      fail(fmt::format("waits at {}, and thread {} of its warp at {}", word_of(kind), i, word_of(waits_[i])));
  }
  warp.n_arrived = 0;
  switch (kind) {
    case Wait::kWarp:
      ++warp.epoch;
      break;
    case Wait::kShuffle:
      for (size_t i = 0; i < 32; ++i) warp.results[i] = warp.operands[warp.operands[i].source % 32].value;
      break;
    case Wait::kBallot: {
      uint32_t bits = 0;
      for (size_t i = 0; i < 32; ++i) bits |= (warp.operands[i].value != 0 ? 1u : 0u) << i;
      warp.results.fill(bits);
      break;
    }
    case Wait::kMma: {
      std::array<MmaFragments, 32> fragments;
      for (size_t i = 0; i < 32; ++i) fragments[i] = warp.operands[i].mma;
      multiply_s8(fragments);
      break;
    }
    default:
      break;
  }
  for (uint32_t i = first; i < first + 32; ++i) wake(i);
}

void ThreadBlock::copy_async(size_t offset, const void* source) {
  check_place(offset, 16, 16);
  check_aligned(source);
  if (!shadow_.begin_arriving(offset, 16, accessor())) fail_access("copies to", offset, 16);
  std::memset(shared_ + offset, 0xff, 16);
  copies_[thread_].issued.push_back({offset, source});
}

void ThreadBlock::commit_async() {
  Copies& copies = copies_[thread_];
  copies.group_ends.push_back(copies.issued.size());
}

void ThreadBlock::wait_async(size_t n_groups_left) {
  Copies& copies = copies_[thread_];
  while (copies.group_ends.size() - copies.n_groups_arrived > n_groups_left) {
    for (const size_t end = copies.group_ends[copies.n_groups_arrived++]; copies.n_arrived < end; ++copies.n_arrived) {
      const Copy& copy = copies.issued[copies.n_arrived];
      std::memcpy(shared_ + copy.offset, copy.source, 16);
      shadow_.arrive(copy.offset, 16, accessor());
    }
  }
  // Groups count the copies before their end: both begin anew together.
  if (copies.n_arrived < copies.issued.size() || copies.n_groups_arrived < copies.group_ends.size()) return;
  copies.issued.clear();
  copies.n_arrived = 0;
  copies.group_ends.clear();
  copies.n_groups_arrived = 0;
}

void ThreadBlock::set_error(std::string what) {
  error_ = fmt::format("kernel {}, block ({}, {}, {}): {}", kernel_, x_, y_, z_, what);
}

// The fiber is left as it is, and what is on its stack is not destroyed.
void ThreadBlock::fail(std::string what) {
  set_error(fmt::format("thread {} {}", thread_, std::exchange(what, {})));
  Fiber& mine = *fiber_;
  fiber_ = &main_;
  for (;;) mine.switch_to(main_);
}

void ThreadBlock::fail_place(size_t offset, size_t n_bytes, size_t alignment) {
  const size_t end = offset + n_bytes;
  if (offset % alignment != 0) {
    fail(fmt::format("accesses bytes {} to {} of shared memory, which are not aligned to {}", offset, end, alignment));
  }
  fail(fmt::format("accesses bytes {} to {} of shared memory, which has {}", offset, end, launch_.shared_bytes));
}

void ThreadBlock::fail_aligned(const void* source) {
  fail(fmt::format("loads 16 bytes from {}, which is not aligned to 16", source));
}

void ThreadBlock::fail_access(const char* verb, size_t offset, size_t n_bytes) {
  const char* other_verb = "wrote";
  const char* missing = "with no barrier between";
  if (shadow_.conflict() == SharedShadow::Conflict::kRead) other_verb = "read";
  if (shadow_.conflict() == SharedShadow::Conflict::kArriving) {
    other_verb = "copies to";
    missing = "with no wait_async between";
  }
  fail(fmt::format("{} bytes {} to {} of shared memory, which thread {} {} {}", verb, offset, offset + n_bytes,
                   shadow_.other_thread(), other_verb, missing));
}

void ThreadBlock::explain_standstill() {
  std::array<uint32_t, 7> n{}, first{};
  for (uint32_t i = launch_.n_threads; i-- > 0;) {
    ++n[static_cast<size_t>(waits_[i])];
    first[static_cast<size_t>(waits_[i])] = i;
  }
  std::string text = "its threads wait for one another:";
  for (size_t i = 0; i < n.size(); ++i) {
    if (n[i] > 0) text += fmt::format(" {} {} (first: thread {}),", n[i], describe(static_cast<Wait>(i)), first[i]);
  }
  text.pop_back();
  set_error(std::move(text));
}

}  // namespace candor::backend::cuda::emulation
