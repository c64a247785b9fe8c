#pragma once
// Backends of these tests: the CUDA backend on the emulation of its kernels, or on the card that CANDOR_TEST_GPU names,
// and the CPU's by the portable kernels.

#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/emulation/device_test_support.h"
#include "conformance/rig.h"
#include "kernels/kernels.h"

namespace candor::testing {

inline std::unique_ptr<backend::Backend> emulated_backend() {
  auto made = backend::make_cuda_backend(backend::cuda::make_test_device(), {.n_threads = 1});
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

inline std::unique_ptr<backend::Backend> portable_backend() {
  auto made = backend::make_cpu_backend({.n_threads = 1, .table = kernels::select_table("portable").value()});
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

// What a backend computes; fails the test where the device reports an error.
template <class Fn>
std::vector<float> computed(std::unique_ptr<backend::Backend> made, Fn&& fn) {
  const backend::Backend& backend = *made;
  Rig rig(std::move(made));
  std::vector<float> values = fn(rig);
  const auto health = backend.health();
  EXPECT_TRUE(health) << health.error().message;
  return values;
}

template <class Fn>
void expect_equal_bits(Fn&& fn) {
  EXPECT_EQ(first_difference(computed(emulated_backend(), fn), computed(portable_backend(), fn)), -1);
}

}  // namespace candor::testing
