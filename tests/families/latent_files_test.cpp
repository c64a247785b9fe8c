// Files of latent attention in the forms that they have had: projections from the latent joined in one tensor, and
// blocks for multi-token prediction behind the others.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/all/make_backend.h"
#include "formats/json_text.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/safetensors/safetensors_writer.h"
#include "model/arch_text.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_latent.h"
#include "model/hub/joined_latents.h"
#include "model/model.h"
#include "support/memory_model_file.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "tensor/encode.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;

constexpr model::LatentHeads kHeads{.n_heads = 4, .key_dim = 16, .value_dim = 16, .latent_dim = 32};

fs::path golden() {
  return goldens() / "deepseek_v3";
}

std::vector<Logits> logits_of(const formats::ModelFile& file) {
  auto made = backend::make_backend("cpu", {.n_threads = 1});
  const auto runner = ModelRunner::make(file, std::move(*made), {.max_rows = 40, .n_blocks = 4});
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back((37 * i * i + 11 * i + 5) % 288);
  return runner == nullptr ? std::vector<Logits>{} : runner->run(tokens, 40);
}

void copy(const TensorView& tensor, std::string name, MemoryModelFile& file) {
  file.add_tensor(std::move(name), tensor.dtype, tensor.shape, {tensor.data, tensor.data + tensor.n_bytes});
}

// The golden's file with keys and values joined, as `dtype`, and the metadata of files of old.
std::unique_ptr<MemoryModelFile> joined_file(const formats::ModelFile& original, DType dtype, bool keeps_parts) {
  auto file = std::make_unique<MemoryModelFile>();
  for (const formats::MetaEntry& entry : original.metadata()) file->set(std::string(entry.key), entry.value);
  for (const TensorView& tensor : original.tensors()) {
    const std::string name(tensor.name);
    const size_t at = name.find(".attn_k_b.weight");
    const bool is_part = at != std::string::npos || name.ends_with(".attn_v_b.weight");
    if (!is_part || keeps_parts) copy(tensor, name, *file);
    if (at == std::string::npos) continue;
    const TensorView* values = original.find(name.substr(0, at) + ".attn_v_b.weight");
    std::vector<std::byte> joined(tensor.n_bytes + values->n_bytes);
    model::join_latent(tensor.data, values->data, kHeads, sizeof(uint16_t), joined.data());
    const int64_t n = kHeads.joined_shape().n_elements();
    std::vector<float> numbers(static_cast<size_t>(n));
    decode_elements(DType::kBF16, joined.data(), n, numbers.data());
    std::vector<std::byte> bytes(
        static_cast<size_t>(n / dtype_info(dtype).block_elements * dtype_info(dtype).block_bytes));
    encode_elements(dtype, numbers.data(), n, bytes.data());
    file->add_tensor(name.substr(0, at) + ".attn_kv_b.weight", dtype, kHeads.joined_shape(), std::move(bytes));
  }
  if (keeps_parts) return file;
  file->erase("deepseek2.attention.key_length_mla");
  file->erase("deepseek2.attention.value_length_mla");
  file->set("deepseek2.attention.key_length", uint64_t{24});
  file->set("deepseek2.attention.value_length", uint64_t{16});
  file->set("deepseek2.attention.head_count_kv", uint64_t{4});
  return file;
}

TEST(latent_files, joined_projections_have_the_bits_of_those_apart) {
  const auto original = model::open_model(golden() / "model.gguf");
  ASSERT_TRUE(original);
  const std::vector<Logits> wanted = logits_of(**original);
  for (const bool keeps_parts : {false, true}) {
    auto file = model::with_split_latents(joined_file(**original, DType::kBF16, keeps_parts));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(logits_of(**file), wanted) << keeps_parts;
    EXPECT_EQ((*file)->copy_bytes() > 0, !keeps_parts);
  }
}

// Keys of a block format become the numbers that they decode to; rows of values stay as they are.
TEST(latent_files, joined_projections_of_a_block_format_keep_their_numbers) {
  const auto original = model::open_model(golden() / "model.gguf");
  ASSERT_TRUE(original);
  auto joined = joined_file(**original, DType::kQ8_0, false);
  const TensorView whole = *joined->find("blk.1.attn_kv_b.weight");
  std::vector<float> numbers(static_cast<size_t>(whole.shape.n_elements()));
  decode_elements(whole.dtype, whole.data, whole.shape.n_elements(), numbers.data());
  auto file = model::with_split_latents(std::move(joined));
  ASSERT_TRUE(file) << file.error().message;
  const TensorView& keys = *(*file)->find("blk.1.attn_k_b.weight");
  const TensorView& values = *(*file)->find("blk.1.attn_v_b.weight");
  EXPECT_EQ(keys.dtype, DType::kF32);
  EXPECT_EQ(values.dtype, DType::kQ8_0);
  std::vector<float> parts[2];
  for (const TensorView* part : {&keys, &values}) {
    ASSERT_TRUE((*file)->make_copy(part->bytes()));
    std::vector<float>& floats = parts[part == &values ? 1 : 0];
    floats.resize(static_cast<size_t>(part->shape.n_elements()));
    decode_elements(part->dtype, part->data, part->shape.n_elements(), floats.data());
  }
  std::vector<float> again(numbers.size());
  model::join_latent(reinterpret_cast<const std::byte*>(parts[0].data()),
                     reinterpret_cast<const std::byte*>(parts[1].data()), kHeads, sizeof(float),
                     reinterpret_cast<std::byte*>(again.data()));
  EXPECT_EQ(again, numbers);
  EXPECT_FALSE(logits_of(**file).empty());
}

TEST(latent_files, a_joined_projection_of_another_shape_is_named) {
  const auto original = model::open_model(golden() / "model.gguf");
  ASSERT_TRUE(original);
  auto joined = joined_file(**original, DType::kBF16, false);
  joined->set("deepseek2.attention.value_length", uint64_t{32});
  const auto file = model::with_split_latents(std::move(joined));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("blk.0.attn_kv_b.weight': shape [128, 32]; expected [192, 32]"),
            std::string::npos)
      << file.error().message;
}

// As DeepSeek V3 is published: one block more than config.json counts, with tensors of its own.
TEST(latent_files, a_folder_with_a_block_for_multi_token_prediction_computes_the_others) {
  const TempFolder folder;
  for (const fs::directory_entry& file : fs::directory_iterator(golden())) {
    if (file.path().extension() == ".json") fs::copy(file.path(), folder.path() / file.path().filename());
  }
  nlohmann::json config = formats::read_json_file(folder.path() / "config.json", 1 << 20).value();
  config["num_nextn_predict_layers"] = 1;
  std::ofstream(folder.path() / "config.json") << config.dump();
  const auto source = formats::safetensors::SafetensorsFile::open(golden() / "model.safetensors");
  ASSERT_TRUE(source);
  std::vector<formats::safetensors::NewTensor> targets;
  std::vector<TensorView> contents;
  const auto add = [&](const TensorView& tensor, std::string name) {
    targets.push_back({std::move(name), tensor.dtype, tensor.shape});
    contents.push_back(tensor);
  };
  constexpr std::string_view kLast = "model.layers.2.";
  for (const TensorView& tensor : source->tensors()) {
    add(tensor, std::string(tensor.name));
    if (tensor.name.starts_with(kLast)) add(tensor, "model.layers.3." + std::string(tensor.name.substr(kLast.size())));
  }
  for (const char* own : {"eh_proj", "enorm", "hnorm", "embed_tokens", "shared_head.norm", "shared_head.head"}) {
    add(source->tensors().front(), std::string("model.layers.3.") + own + ".weight");
  }
  auto writer = formats::safetensors::SafetensorsWriter::create(folder.path() / "model.safetensors", targets);
  ASSERT_TRUE(writer);
  for (const TensorView& tensor : contents) ASSERT_TRUE(writer->write_tensor(tensor.bytes()));
  ASSERT_TRUE(writer->finish());
  const auto file = model::open_model(folder.path());
  const auto plain = model::open_model(golden());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(logits_of(**file), logits_of(**plain));
  EXPECT_NE(model::to_text(*model::read_arch(**file)).find("multi-token prediction: 1 blocks from block 3 on"),
            std::string::npos);
}

}  // namespace
}  // namespace candor::testing
