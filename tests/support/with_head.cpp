#include "support/with_head.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/model_file.h"
#include "model/model.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

void add_floats(MemoryModelFile& file, const std::string& name, const Shape& shape, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  file.add_tensor(name, DType::kF32, shape, std::move(bytes));
}

// Of models whose blocks are one layer each: that of the last one that has any, behind its norm.
void add_feed_forward(const formats::ModelFile& model, const model::ArchSpec& spec, const std::string& to,
                      MemoryModelFile& head) {
  size_t last = spec.blocks.size() - 1;
  while (!spec.blocks[last].has_ffn()) --last;
  const std::string from = "blk." + std::to_string(last) + ".";
  for (const TensorView& tensor : model.tensors()) {
    if (!tensor.name.starts_with(from)) continue;
    std::string part(tensor.name.substr(from.size()));
    if (part == "attn_norm.weight") part = "post_attention_norm.weight";
    const auto bytes = tensor.bytes();
    head.add_tensor(to + part, tensor.dtype, tensor.shape, {bytes.begin(), bytes.end()});
  }
}

// Small, of both signs.
std::vector<float> made_up(size_t n, uint32_t seed) {
  std::vector<float> values(n);
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(seed >> 8) % 2001 - 1000) * 1e-4f;
  }
  return values;
}

// Every second row of the model's output matrix, and which tokens these are.
void add_every_second(const formats::ModelFile& model, const model::ArchSpec& spec, MemoryModelFile& head) {
  const TensorView* matrix = model.find(spec.head.tied ? "token_embd.weight" : "output.weight");
  const auto n_tokens = static_cast<size_t>(spec.vocab / 2);
  const auto dim = static_cast<size_t>(spec.dim);
  std::vector<float> rows(n_tokens * dim);
  std::vector<std::byte> ids(n_tokens * sizeof(int64_t));
  for (size_t i = 0; i < n_tokens; ++i) {
    const auto id = static_cast<int64_t>(2 * i);
    decode_row(*matrix, id, rows.data() + i * dim);
    std::memcpy(ids.data() + i * sizeof id, &id, sizeof id);
  }
  add_floats(head, "output.weight", {2, {spec.vocab / 2, spec.dim}}, rows);
  head.add_tensor("d2t", DType::kI64, {1, {spec.vocab / 2}}, std::move(ids));
}

}  // namespace

std::unique_ptr<MemoryModelFile> make_eagle(const std::filesystem::path& path) {
  constexpr int64_t kWidth = 64;  // of two query heads, the feed-forward, and one K/V head twice over
  const auto model = formats::open_model_file(path);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  const auto spec = model::read_arch(**model);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
  auto head = std::make_unique<MemoryModelFile>();
  const int64_t dim = spec->dim;
  const auto n_blocks = static_cast<int64_t>(spec->blocks.size());
  head->set_string("general.architecture", "eagle3");
  for (const auto& [key, value] : {std::pair<const char*, int64_t>{"embedding_length", dim},
                                   {"context_length", 512},
                                   {"block_count", 1},
                                   {"feed_forward_length", kWidth},
                                   {"attention.head_count", 2},
                                   {"attention.head_count_kv", 1},
                                   {"attention.key_length", kWidth / 2},
                                   {"attention.value_length", kWidth / 2},
                                   {"target_hidden_size", dim}}) {
    head->set(std::string("eagle3.") + key, static_cast<uint64_t>(value));
  }
  head->set("eagle3.attention.layer_norm_rms_epsilon", 1e-5);
  head->set_ints("eagle3.target_layers", {n_blocks - 2, n_blocks - 1, n_blocks});
  std::vector<float> last(static_cast<size_t>(dim * 3 * dim));
  for (int64_t i = 0; i < dim; ++i) last[static_cast<size_t>(i * 3 * dim + 2 * dim + i)] = 1.0f;
  add_floats(*head, "fc.weight", {2, {dim, 3 * dim}}, last);
  for (const char* name :
       {"output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_norm_2.weight", "blk.0.ffn_norm.weight"}) {
    add_floats(*head, name, {1, {dim}}, std::vector<float>(static_cast<size_t>(dim), 1.0f));
  }
  uint32_t seed = 1;
  for (const auto& [name, rows, cols] : {std::tuple<const char*, int64_t, int64_t>{"attn_q", kWidth, 2 * dim},
                                         {"attn_k", kWidth / 2, 2 * dim},
                                         {"attn_v", kWidth / 2, 2 * dim},
                                         {"attn_output", dim, kWidth},
                                         {"ffn_gate", kWidth, dim},
                                         {"ffn_up", kWidth, dim},
                                         {"ffn_down", dim, kWidth}}) {
    add_floats(*head, std::string("blk.0.") + name + ".weight", {2, {rows, cols}},
               made_up(static_cast<size_t>(rows * cols), ++seed));
  }
  add_every_second(**model, *spec, *head);
  return head;
}

std::unique_ptr<MemoryModelFile> make_head(const std::filesystem::path& path) {
  const auto model = formats::open_model_file(path);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  const auto spec = model::read_arch(**model);
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
  auto head = std::make_unique<MemoryModelFile>();
  head->set_string("general.architecture", spec->family);
  size_t last = spec->blocks.size() - 1;
  while (!spec->blocks[last].has_attention) --last;
  const std::string from = "blk." + std::to_string(last) + ".";
  const std::string to = "blk." + std::to_string(spec->blocks.size()) + ".";
  for (const TensorView& tensor : (*model)->tensors()) {
    const bool is_state = tensor.name.find(".ssm_") != std::string_view::npos;
    if (!tensor.name.starts_with(from) || is_state) continue;
    const auto bytes = tensor.bytes();
    head->add_tensor(to + std::string(tensor.name.substr(from.size())), tensor.dtype, tensor.shape,
                     {bytes.begin(), bytes.end()});
  }
  if (!spec->blocks[last].has_ffn()) add_feed_forward(**model, *spec, to, *head);
  const auto dim = static_cast<size_t>(spec->dim);
  std::vector<float> mixture(dim * 2 * dim);
  for (size_t i = 0; i < dim; ++i) mixture[i * 2 * dim + i] = mixture[i * 2 * dim + dim + i] = 0.5f;
  add_floats(*head, to + "nextn.eh_proj.weight", {2, {spec->dim, 2 * spec->dim}}, mixture);
  for (const char* name : {"nextn.enorm.weight", "nextn.hnorm.weight", "nextn.shared_head_norm.weight"}) {
    add_floats(*head, to + name, {1, {spec->dim}}, std::vector<float>(dim, 1.0f));
  }
  return head;
}

std::filesystem::path write_eagle(const std::filesystem::path& model, const std::filesystem::path& path) {
  const auto written = write_model(*make_eagle(model), path);
  EXPECT_TRUE(written) << (written ? "" : written.error().message);
  return path;
}

std::filesystem::path write_head(const std::filesystem::path& model, const std::filesystem::path& path) {
  const auto written = write_model(*make_head(model), path);
  EXPECT_TRUE(written) << (written ? "" : written.error().message);
  return path;
}

}  // namespace candor::testing
