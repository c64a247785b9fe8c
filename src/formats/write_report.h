#pragma once
// The result of writing a model to another file: sizes before and after.

#include <cstdint>

namespace candor::formats {

struct WriteReport {
  uint64_t source_bytes = 0;  // of tensors
  uint64_t written_bytes = 0;
  int64_t n_weights = 0;
};

}  // namespace candor::formats
