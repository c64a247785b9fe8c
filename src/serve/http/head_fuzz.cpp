// Any bytes as a request head: the strict scanner says the same whether they come at once or bit by bit. First byte:
// how many bytes come at a time.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "serve/http/head_scanner.h"

namespace {

using candor::http::HeadScanner;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const candor::testing::FuzzBudget budget(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  HeadScanner at_once({});
  const HeadScanner::State state = at_once.scan(bytes);
  HeadScanner in_pieces({});
  HeadScanner::State last = HeadScanner::State::kMore;
  for (size_t n = 0; n < bytes.size() && last == HeadScanner::State::kMore;) {
    n = std::min(bytes.size(), n + 1 + data[0]);
    last = in_pieces.scan(bytes.substr(0, n));
  }
  if (state == HeadScanner::State::kWhole) {
    CANDOR_CHECK(last == state && in_pieces.head_bytes() == at_once.head_bytes());
    CANDOR_CHECK(at_once.head_bytes() <= bytes.size() && bytes.substr(0, at_once.head_bytes()).ends_with("\r\n\r\n"));
  } else if (state == HeadScanner::State::kBad) {
    CANDOR_CHECK(at_once.fault().status >= 400 && !at_once.fault().message.empty());
    CANDOR_CHECK(at_once.fault().message.find('\n') == std::string::npos);
  }
  return 0;
}
