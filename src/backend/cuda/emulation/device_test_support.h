#pragma once
// The device that tests of kernels run on: the emulation, or with CANDOR_TEST_GPU=0 the first card
// (scripts/check_device.sh). The same tests hold for both.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "backend/cuda/driver_device.h"
#include "backend/cuda/emulation/emulated_device.h"
#include "base/error.h"

namespace candor::backend::cuda {

// A card that was asked for and does not open ends the tests. It stays open until they end: to open one takes long, to
// open it again does not.
inline std::unique_ptr<Device> make_test_device() {
  const char* card = std::getenv("CANDOR_TEST_GPU");
  if (card == nullptr) return make_emulated_device();
  const auto open = [card] {
    auto device = open_driver_device(std::atoi(card));
    if (!device) {
      std::fprintf(stderr, "CANDOR_TEST_GPU=%s: %s\n", card, device.error().message.c_str());
      std::exit(1);
    }
    return *std::move(device);
  };
  static const std::unique_ptr<Device> kept = open();
  return open();
}

inline bool is_card(const Device& device) {
  return dynamic_cast<const EmulatedDevice*>(&device) == nullptr;
}

}  // namespace candor::backend::cuda
