// Any bytes as config.json of every family: refused in one line, or turned into metadata.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/json_text.h"
#include "fuzz/fuzz_budget.h"
#include "model/families/families.h"
#include "model/hub/hub_config.h"

namespace {

void expect_one_line(const candor::Error& error) {
  CANDOR_CHECK(error.message.find('\n') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  const auto json = candor::formats::parse_json({reinterpret_cast<const char*>(data), size}, "'fuzz'");
  if (!json) {
    expect_one_line(json.error());
    return 0;
  }
  for (const candor::model::Family& family : candor::model::families()) {
    for (const candor::model::HubForm& form : family.hub) {
      candor::formats::MetaList metadata;
      const auto read = candor::model::read_hub_config(*json, family.name, "'fuzz'", form, metadata);
      if (!read) expect_one_line(read.error());
    }
  }
  const auto factors = candor::model::rope_factors(*json, "'fuzz'");
  if (!factors) expect_one_line(factors.error());
  return 0;
}
