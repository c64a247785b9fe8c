#include "backend/cuda/emulation/fiber.h"

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace candor::backend::cuda::emulation {

namespace fc = boost::context::detail;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = size_t{256} << 10;
void tell_leave(void** fake_stack, const void* begin, size_t n_bytes) {
  __sanitizer_start_switch_fiber(fake_stack, begin, n_bytes);
}
void tell_arrive(void* fake_stack, const void** old_begin, size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, old_begin, old_bytes);
}
void forget_redzones(const void* begin, size_t n_bytes) {
  __asan_unpoison_memory_region(begin, n_bytes);
}
#else
constexpr size_t kStackBytes = size_t{64} << 10;
void tell_leave(void**, const void*, size_t) {}
void tell_arrive(void*, const void**, size_t*) {}
void forget_redzones(const void*, size_t) {}
#endif

// All stacks are aligned to pages: at the same depth they would share a few sets of the cache.
constexpr size_t kColours = 24;
constexpr size_t kColourBytes = 704;

}  // namespace

struct Fiber::Landing {
  Fiber* from;
  Fiber* to;
  void* context;  // of `from`, known when `to` has arrived
};

Fiber::Fiber(Entry entry, void* data, size_t number) : entry_(entry), data_(data) {
  const boost::context::stack_context stack = boost::context::protected_fixedsize_stack(kStackBytes).allocate();
  stack_top_ = stack.sp;
  stack_bytes_ = stack.size;
  const size_t page = boost::context::stack_traits::page_size();
  usable_begin_ = static_cast<std::byte*>(stack_top_) - stack_bytes_ + page;
  usable_bytes_ = stack_bytes_ - page;
  const size_t colour = number % kColours * kColourBytes;
  context_ = fc::make_fcontext(static_cast<std::byte*>(stack_top_) - colour, stack_bytes_ - colour,
                               [](fc::transfer_t transfer) {
                                 auto& landing = *static_cast<Landing*>(transfer.data);
                                 landing.context = transfer.fctx;
                                 Fiber& self = *landing.to;
                                 arrive(landing);
                                 self.entry_(self.data_, self);
                               });
}

Fiber::~Fiber() {
  if (stack_top_ == nullptr) return;
  forget_redzones(usable_begin_, usable_bytes_);
  boost::context::stack_context stack;
  stack.sp = stack_top_;
  stack.size = stack_bytes_;
  boost::context::protected_fixedsize_stack(kStackBytes).deallocate(stack);
}

void Fiber::arrive(const Landing& landing) {
  landing.from->context_ = landing.context;
  const void* old_begin = nullptr;
  size_t old_bytes = 0;
  tell_arrive(landing.to->fake_stack_, &old_begin, &old_bytes);
  if (landing.from->stack_top_ != nullptr) return;
  landing.from->usable_begin_ = old_begin;
  landing.from->usable_bytes_ = old_bytes;
}

void Fiber::switch_to(Fiber& other) {
  Landing leaving{this, &other, nullptr};
  tell_leave(&fake_stack_, other.usable_begin_, other.usable_bytes_);
  const fc::transfer_t transfer = fc::jump_fcontext(other.context_, &leaving);
  auto& landing = *static_cast<Landing*>(transfer.data);
  landing.context = transfer.fctx;
  arrive(landing);
}

}  // namespace candor::backend::cuda::emulation
