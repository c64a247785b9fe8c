#include "counting_new.h"

#include <cstdlib>
#include <new>

namespace {
thread_local int64_t n_calls = 0;
}  // namespace

int64_t candor::testing::n_allocations() {
  return n_calls;
}

void* operator new(size_t n_bytes) {
  ++n_calls;
  if (void* memory = std::malloc(n_bytes == 0 ? 1 : n_bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t n_bytes, const std::nothrow_t&) noexcept {
  ++n_calls;
  return std::malloc(n_bytes == 0 ? 1 : n_bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
