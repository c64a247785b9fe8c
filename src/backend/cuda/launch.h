#pragma once
// A launch: a kernel's name, its blocks of threads, and the struct that it takes. What takes launches runs them at once
// (Device) or keeps them for later (LaunchList).

#include <cstddef>
#include <cstdint>

#include "platform/padding.h"

namespace candor::backend::cuda {

// Blocks of threads, and what each has.
struct Launch {
  uint32_t x = 1, y = 1, z = 1;
  uint32_t n_threads = 1;  // a multiple of 32
  uint32_t shared_bytes = 0;
  bool operator==(const Launch&) const = default;
};

// A kernel by its name, which stays; it takes one struct of plain data by value.
template <class Args>
struct Kernel {
  const char* name;
};

// Of structs of arguments, at most.
inline constexpr size_t kArgsAlignment = 16;

class Launcher {
 public:
  virtual ~Launcher() = default;

  // REQUIRES: a kernel of kernels/kernel_list.h; launch.x, y, z > 0. args may be reused when it returns.
  virtual void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) = 0;
  template <class Args>
  void run(Kernel<Args> kernel, const Launch& launch_of, const Args& args) {
    static_assert(alignof(Args) <= kArgsAlignment);
    Args bytes = args;
    platform::clear_padding(bytes);  // what is like the last time is not sent again
    launch(kernel.name, launch_of, &bytes, sizeof(Args));
  }
};

}  // namespace candor::backend::cuda
