// Any bytes as a line of a batch: what is taken has a name, a url and a body that is JSON, and reads the same again.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "serve/batch/batch_line.h"
#include "serve/core/json_body.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = candor::serve::parse_batch_line(text, 1, 0, "m");
  if (!line) return 0;
  CANDOR_CHECK(!line->custom_id.empty() && line->url.starts_with("/v1/"));
  CANDOR_CHECK(line->body.find('\n') == std::string::npos);
  CANDOR_CHECK(candor::serve::parse_body(line->body).has_value());
  const candor::serve::Json again = {
      {"custom_id", line->custom_id}, {"url", line->url}, {"body", candor::serve::Json::parse(line->body)}};
  const auto same = candor::serve::parse_batch_line(candor::serve::to_text(again), 2, 0, "m");
  CANDOR_CHECK(same && same->digest == line->digest);
  return 0;
}
