#pragma once
// CPU backends that break one rule of the numerics contract on purpose, so that the tests that prove the contract can
// show that they would notice. Attention is written as on paper, in f32, with the keys in parts that are combined at
// the end: the number of parts shows in the last bits (one part shows nothing). K/V in bf16; one such backend computes
// at a time.

#include <cstdint>
#include <memory>

#include "backend/backend.h"

namespace candor::testing {

enum class BrokenRule : uint8_t {
  kSplitKeysByThreads,  // into as many parts as there are threads
  kSplitKeysByRows,     // into 1 + (rows of the step mod 5) parts
  kSwapStates,          // first and last sequence of a step begin from the other's recurrent state
  kLateCheckpoints,     // states that are saved inside of a slice stand behind one token more
  kSwapCheckpoints,     // two sequences of a step save such states in each other's slots
};

Result<std::unique_ptr<backend::Backend>> make_broken_backend(int32_t n_threads, BrokenRule rule);

}  // namespace candor::testing
