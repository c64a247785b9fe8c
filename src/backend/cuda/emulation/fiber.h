#pragma once
// A stack of its own, on which a function runs until it switches to another fiber. Boost.Context does the switch, and
// AddressSanitizer is told of it. What is on the stack of a fiber that ends in the middle is not destroyed.
// All fibers of a set belong to the thread that made them.

#include <cstddef>

namespace candor::backend::cuda::emulation {

class Fiber {
 public:
  using Entry = void (*)(void* data, Fiber& self);

  // The caller's own stack, to come back to.
  Fiber() = default;
  // entry(data, *this) runs at the first switch to it, in the float mode of now, and never returns. number: of the
  // fiber in its set; stacks of different numbers begin at different places of a cache.
  Fiber(Entry entry, void* data, size_t number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called on this fiber; returns when something switches back to it.
  void switch_to(Fiber& other);

 private:
  struct Landing;
  static void arrive(const Landing& landing);

  void* context_ = nullptr;
  Entry entry_ = nullptr;
  void* data_ = nullptr;
  void* stack_top_ = nullptr;  // of the allocation; null for the caller's own stack
  size_t stack_bytes_ = 0;
  const void* usable_begin_ = nullptr;  // for the sanitizer
  size_t usable_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace candor::backend::cuda::emulation
