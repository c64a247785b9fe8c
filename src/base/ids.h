#pragma once
// The integer ids that travel between modules: those of the interface, and the library's own.

#include <cstdint>

#include "candor/ids.h"  // IWYU pragma: export

namespace candor {

using BlockId = int32_t;     // index into the K/V block pool
using StateId = int32_t;      // slot of a sequence's recurrent state
using AdapterId = int32_t;    // of weights that are added to a model's
using SequenceId = int64_t;  // unique within one engine, never reused

inline constexpr BlockId kNoBlock = -1;
inline constexpr StateId kNoState = -1;
inline constexpr AdapterId kNoAdapter = -1;

}  // namespace candor
