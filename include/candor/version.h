#pragma once
// Version of the library: semantic, of the headers in this folder.

namespace candor {

inline constexpr const char* kVersion = "0.1.0";
// Changes whenever a change of the engine may change a bit of an answer; part of every prefix-cache key.
inline constexpr int kNumericsVersion = 3;

}  // namespace candor
