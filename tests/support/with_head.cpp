#include "support/with_head.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cstring>
#include <string>

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

}  // namespace

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

std::filesystem::path write_head(const std::filesystem::path& model, const std::filesystem::path& path) {
  const auto written = write_model(*make_head(model), path);
  EXPECT_TRUE(written) << (written ? "" : written.error().message);
  return path;
}

}  // namespace candor::testing
