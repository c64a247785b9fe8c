// Any bytes as a receipt: refused in one line, or read; what is read is written and read again as the same.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "candor/verify.h"
#include "fuzz/fuzz_budget.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto receipt = candor::parse_receipt(text);
  if (!receipt) {
    if (receipt.error().message.empty() || receipt.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const std::string json = candor::to_json(*receipt);
  const auto again = candor::parse_receipt(json);
  if (!again || candor::to_json(*again) != json) std::abort();
  [[maybe_unused]] const auto checked = candor::check_signature(*again);
  return 0;
}
