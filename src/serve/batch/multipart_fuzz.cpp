// A boundary, a newline, and any bytes as a form: its parts lie within the body.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/batch/multipart.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view body = text.substr(std::min(end + 1, text.size()));
  const auto parts =
      candor::serve::parse_form("multipart/form-data; boundary=" + std::string(text.substr(0, end)), body);
  if (!parts) return 0;
  for (const candor::serve::FormPart& part : *parts) {
    CANDOR_CHECK(!part.name.empty());
    CANDOR_CHECK(part.bytes.empty() || (part.bytes.data() >= body.data() &&
                                        part.bytes.data() + part.bytes.size() <= body.data() + body.size()));
  }
  return 0;
}
