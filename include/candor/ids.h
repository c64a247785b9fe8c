#pragma once
// The integer names of the interface.

#include <cstdint>

namespace candor {

using TokenId = std::int32_t;    // index into the vocabulary
using RequestId = std::int64_t;  // unique within one engine, never reused

inline constexpr TokenId kNoToken = -1;

}  // namespace candor
