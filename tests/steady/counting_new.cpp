#include "counting_new.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int64_t n_calls = 0;
thread_local int64_t n_good_left = INT64_MAX;
thread_local int64_t n_bad_left = 0;
thread_local int64_t n_failed = 0;

void* allocate(size_t n_bytes) {
  ++n_calls;
  if (n_bad_left > 0 && --n_good_left < 0) {
    --n_bad_left;
    ++n_failed;
    return nullptr;
  }
  return std::malloc(n_bytes == 0 ? 1 : n_bytes);
}

}  // namespace

int64_t candor::testing::n_allocations() {
  return n_calls;
}

void candor::testing::fail_allocations(int64_t n_good, int64_t n_bad) {
  n_good_left = n_good;
  n_bad_left = n_bad;
  n_failed = 0;
}

int64_t candor::testing::stop_failing() {
  n_bad_left = 0;
  return n_failed;
}

void* operator new(size_t n_bytes) {
  if (void* memory = allocate(n_bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t n_bytes, const std::nothrow_t&) noexcept {
  return allocate(n_bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
