#pragma once
// The integer names that travel between modules.

#include <cstdint>

namespace candor {

using TokenId = int32_t;     // index into the vocabulary
using BlockId = int32_t;     // index into the K/V block pool
using SequenceId = int64_t;  // unique within one engine, never reused

inline constexpr TokenId kNoToken = -1;
inline constexpr BlockId kNoBlock = -1;

}  // namespace candor
