// Heads for multi-token prediction under the names that each family's checkpoints have for them, there and back.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backend/all/make_backend.h"
#include "formats/safetensors/safetensors_file.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_writer.h"
#include "model/model.h"
#include "model/prediction.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "support/with_head.h"

namespace candor::testing {
namespace {

struct Published {
  const char* golden;
  const char* name;  // of a tensor that only such blocks have
};

class PredictionOf : public ::testing::TestWithParam<Published> {};

// The golden's model, whose metadata is borrowed, and its head behind it as GGUF files have it.
std::unique_ptr<MemoryModelFile> with_head(const formats::ModelFile& model, const std::filesystem::path& path) {
  auto both = make_head(path);
  const auto spec = model::read_arch(model);
  EXPECT_TRUE(spec);
  for (const formats::MetaEntry& entry : model.metadata()) both->set(std::string(entry.key), entry.value);
  for (const TensorView& tensor : model.tensors()) {
    both->add_tensor(std::string(tensor.name), tensor.dtype, tensor.shape,
                     {tensor.bytes().begin(), tensor.bytes().end()});
  }
  both->set(spec->family + ".block_count", uint64_t{spec->blocks.size() + 1});
  for (const char* name : {".attention.head_count_kv", ".feed_forward_length"}) {
    const formats::MetaValue* of_blocks = both->meta(spec->family + name);
    const auto* list = of_blocks == nullptr ? nullptr : std::get_if<formats::MetaArray>(of_blocks);
    if (list == nullptr) continue;
    auto longer = std::get<std::vector<int64_t>>(*list);
    longer.push_back(std::ranges::max(longer));
    both->set(spec->family + name, formats::MetaArray(std::move(longer)));
  }
  both->set(spec->family + ".nextn_predict_layers", uint64_t{1});
  return both;
}

TEST_P(PredictionOf, stands_behind_the_model_and_is_written_as_it_is_published) {
  const auto path = goldens() / GetParam().golden / "model.gguf";
  const auto model = formats::open_model_file(path);
  ASSERT_TRUE(model);
  const auto both = with_head(**model, path);
  const auto spec = model::read_arch(*both);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->n_prediction_blocks, 1);
  const TempFolder folder;
  const auto written = model::write_hub_folder(*both, folder.path() / "m", {});
  ASSERT_TRUE(written) << written.error().message;
  const auto checkpoint = formats::safetensors::SafetensorsFile::open(folder.path() / "m" / "model.safetensors");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto has_name = [](const TensorView& tensor) { return tensor.name == GetParam().name; };
  EXPECT_EQ(std::ranges::count_if(checkpoint->tensors(), has_name), 1);
  const auto again = model::open_model(folder.path() / "m");
  ASSERT_TRUE(again) << again.error().message;
  const auto spec_again = model::read_arch(**again);
  ASSERT_TRUE(spec_again) << spec_again.error().message;
  EXPECT_EQ(spec_again->n_prediction_blocks, 1);
  EXPECT_EQ(spec_again->blocks, spec->blocks);
  const auto backend = backend::make_backend("cpu", {.n_threads = 1});
  ASSERT_TRUE(backend);
  const auto plan = model::plan_head(**again, *spec_again, **backend);
  EXPECT_TRUE(plan) << plan.error().message;
  const std::string join = "blk." + std::to_string(spec->blocks.size()) + ".nextn.eh_proj.weight";
  const TensorView* here = (*again)->find(join);
  ASSERT_NE(here, nullptr);
  ASSERT_TRUE((*again)->make_copy(here->bytes()));
  EXPECT_EQ(std::memcmp(here->data, both->find(join)->data, here->n_bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(families, PredictionOf,
                         ::testing::Values(Published{"qwen3_5_text", "mtp.fc.weight"},
                                           Published{"qwen3_next", "mtp.pre_fc_norm_hidden.weight"},
                                           Published{"deepseek_v3", "model.layers.3.eh_proj.weight"},
                                           Published{"glm4_moe", "model.layers.3.enorm.weight"},
                                           Published{"ernie4_5_moe", "model.mtp_emb_norm.0.weight"},
                                           Published{"exaone_moe", "mtp.layers.0.self_attn.q_proj.weight"},
                                           Published{"nemotron_h_moe", "mtp.layers.0.eh_proj.weight"},
                                           Published{"qwen2", "model.mtp_layers.0.input_proj.weight"}),
                         [](const auto& family) { return std::string(family.param.golden); });

}  // namespace
}  // namespace candor::testing
