// Any bytes as the header of a safetensors file with 64 bytes of data behind it: read twice with the same verdict; what
// is read stays inside the data.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/safetensors/safetensors_file.h"
#include "fuzz/fuzz_budget.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  const std::vector<std::byte> bytes(64);
  std::vector<std::string> names;
  std::vector<std::string> names_again;
  const auto views = candor::formats::safetensors::read_header(header, bytes, "'fuzz'", names);
  const auto again = candor::formats::safetensors::read_header(header, bytes, "'fuzz'", names_again);
  CANDOR_CHECK(views.has_value() == again.has_value());
  if (!views) {
    CANDOR_CHECK(views.error().message == again.error().message);
    CANDOR_CHECK(views.error().message.find('\n') == std::string::npos);
    return 0;
  }
  size_t total = 0;
  for (const candor::TensorView& view : *views) {
    CANDOR_CHECK(view.data >= bytes.data() && view.data + view.n_bytes <= bytes.data() + bytes.size());
    total += view.n_bytes;
  }
  CANDOR_CHECK(total == bytes.size());
  return 0;
}
