// Any bytes as preprocessor_config.json: a recipe by which small images become whole patches, or are refused, or an
// error of one line.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/fuzz_budget.h"
#include "image/prepare.h"
#include "image/processor_config.h"

namespace {

void expect_named_line(const candor::Error& error) {
  CANDOR_CHECK(!error.message.empty() && error.message.find_first_of("\r\n") == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace candor::image;
  candor::testing::FuzzBudget budget(size);
  const auto recipe = recipe_of({reinterpret_cast<const char*>(data), size}, {.patch = 14, .merge = 2});
  if (!recipe) {
    expect_named_line(recipe.error());
    return 0;
  }
  CANDOR_CHECK(describe(*recipe).find('\n') == std::string::npos);
  budget.allow({.cpu_s = 20, .more_bytes = int64_t{2} << 30});
  for (const Size shape : {Size{17, 40}, Size{1, 1}}) {
    const Image image{shape.width, shape.height,
                      std::vector<uint8_t>(3 * static_cast<size_t>(shape.width * shape.height))};
    const auto prepared = prepare(image, *recipe);
    if (!prepared) {
      expect_named_line(prepared.error());
      continue;
    }
    CANDOR_CHECK(prepared->whole_tile < static_cast<int32_t>(prepared->tiles.size()));
    for (const Tile& tile : prepared->tiles) {
      CANDOR_CHECK(tile.patches.size() ==
                   static_cast<size_t>(tile.rows) * static_cast<size_t>(tile.cols) * 3 * 14 * 14);
    }
  }
  return 0;
}
