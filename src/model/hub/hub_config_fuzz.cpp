// Any bytes as config.json of every family: refused in one line, or turned into metadata.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/json_text.h"
#include "fuzz/fuzz_budget.h"
#include "model/families/families.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_fields.h"
#include "model/hub/hub_rope.h"
#include "model/hub/hub_rope_factors.h"

namespace {

void expect_one_line(const candor::Error& error) {
  CANDOR_CHECK(error.message.find('\n') == std::string::npos);
}

candor::Result<void> read_config(const nlohmann::json& value, const candor::model::Family& family,
                                 const candor::model::HubForm& form) {
  CANDOR_ASSIGN(candor::model::HubConfig config, candor::model::HubConfig::make(value, form.model_type, "'fuzz'"));
  CANDOR_ASSIGN(const candor::model::HubRope rope, candor::model::unite_rope(config));
  config.keep_rope(rope.full);
  candor::formats::MetaList metadata;
  CANDOR_TRY(candor::model::read_hub_fields(config, rope, family.name, form, metadata));
  CANDOR_ASSIGN([[maybe_unused]] const auto factors, candor::model::rope_factors(config, rope));
  CANDOR_TRY(config.check_all_read());
  return {};
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
      const auto read = read_config(*json, family, form);
      if (!read) expect_one_line(read.error());
    }
  }
  return 0;
}
