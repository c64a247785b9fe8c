// Any bytes as an image file: pixels of the size that they name, or an error of the input in one line. No input ends a
// helper by a signal or has a fault of ours.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "sandbox/helper_pool.h"

namespace {

candor::sandbox::HelperPool& helpers() {
  static candor::sandbox::HelperPool pool;
  return pool;
}

void expect(bool is_right, const candor::Error& error) {
  if (is_right) return;
  std::fprintf(stderr, "fuzz: an image gives the error \"%s\"\n", error.message.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool is_started = helpers().decode_image("").has_value();
  CANDOR_CHECK(!is_started);
  candor::testing::FuzzBudget budget(size);
  const auto image = helpers().decode_image({reinterpret_cast<const char*>(data), size});
  if (image) {
    budget.allow({.more_bytes = int64_t{256} << 20});
    CANDOR_CHECK(image->width > 0 && image->height > 0);
    CANDOR_CHECK(image->rgb().size() ==
                 size_t{3} * static_cast<size_t>(image->width) * static_cast<size_t>(image->height));
    return 0;
  }
  const candor::Error& error = image.error();
  expect(error.kind == candor::ErrorKind::kInvalidInput || error.kind == candor::ErrorKind::kUnsupported, error);
  expect(error.message.starts_with("the ") && error.message.find_first_of("\r\n") == std::string::npos, error);
  expect(error.message.find("by signal") == std::string::npos, error);
  return 0;
}
