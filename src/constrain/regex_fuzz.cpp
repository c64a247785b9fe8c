// Any bytes as a regular expression.
#include <cstdint>
#include <string_view>

#include "fuzz/constraint_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  candor::testing::constraint_walk().run(candor::GrammarKind::kRegex, {reinterpret_cast<const char*>(data), size});
  return 0;
}
