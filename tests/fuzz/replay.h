// The fuzz targets of a build without libFuzzer, by their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace candor::testing {

struct Replay {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

// Written by tests/fuzz/CMakeLists.txt.
const std::vector<Replay>& replays();

}  // namespace candor::testing
