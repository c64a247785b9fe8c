// What towers cost on paper, beside counts by hand.

#include "vision/tower_cost.h"

#include <gtest/gtest.h>

#include <string>

#include "image/prepare.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "vision/encoder.h"
#include "vision/vision_files.h"
#include "vision_golden.h"

namespace candor::testing {
namespace {

vision::VisionSpec spec_of(const char* name) {
  const auto file = vision::open_tower_of(vision_golden(name));
  const auto whole = model::open_model(vision_golden(name));
  EXPECT_TRUE(file && whole);
  const auto text = model::read_arch(**whole);
  EXPECT_TRUE(text) << text.error().message;
  auto spec = vision::read_vision(**file, *text);
  EXPECT_TRUE(spec) << spec.error().message;
  return spec ? std::move(*spec) : vision::VisionSpec{};
}

// Two blocks of a resampler with 4 heads of 16, two for keys and values, whose 6 rows read what patches became.
TEST(TowerCost, of_a_resampler_is_counted) {
  const vision::VisionSpec spec = spec_of("idefics2");
  ASSERT_EQ(spec.resampler.n_rows, 6);
  ASSERT_EQ(spec.resampler.n_blocks, 2);
  vision::VisionSpec without = spec;
  without.resampler = {};
  image::Prepared prepared;
  prepared.tiles = {{.rows = 9, .cols = 7}};
  const model::Work work = vision::cost_of(spec, 0, prepared).work;
  const model::Work tower = vision::cost_of(without, 0, prepared).work;
  const double own = 64 * (64 + 32 + 32 + 64) + 3 * 64 * spec.resampler.block.ffn.ffn_dim;
  EXPECT_EQ(work.matrix_flops - tower.matrix_flops, 2 * 2 * (63 * 64 * 64 + 6 * own));
  EXPECT_EQ(work.attention_flops - tower.attention_flops, 2 * 4 * 64 * 6 * (63 + 6));
  EXPECT_EQ(vision::cost_of(spec, 0, prepared).n_rows, 6);
}

// 10 x 6 patches: windows of 4 x 4 leave 2 columns and 2 rows.
TEST(TowerCost, of_windows_counts_what_they_see) {
  vision::VisionSpec spec = spec_of("qwen2_5_vl");
  image::Prepared prepared;
  prepared.tiles = {{.rows = 10, .cols = 6}};
  spec.windows.side = 0;
  const double whole = vision::cost_of(spec, 0, prepared).work.attention_flops;
  spec.windows.side = 4;
  spec.windows.is_whole.assign(spec.tower.blocks.size(), false);
  const double windowed = vision::cost_of(spec, 0, prepared).work.attention_flops;
  EXPECT_DOUBLE_EQ(windowed / whole, (2.0 * 16 * 16 + 2 * 8 * 8 + 8 * 8 + 4 * 4) / (60.0 * 60));
}

}  // namespace
}  // namespace candor::testing
