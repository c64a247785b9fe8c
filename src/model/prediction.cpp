#include "model/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "formats/quote.h"
#include "model/families/families.h"
#include "model/hparams.h"

namespace candor::model {
namespace {

constexpr std::string_view kStem = "blk.";
constexpr std::string_view kEnd = ".nextn.eh_proj.weight";

Error refused(const formats::ModelFile& file, const std::string& why) {
  const auto& paths = file.info().paths;
  return fail(ErrorKind::kInvalidInput,
              paths.empty() ? why : fmt::format("{}: {}", formats::in_quotes(paths.front().string()), why));
}

const TensorView* tensor_of(const formats::ModelFile& file, int32_t block, std::string_view name) {
  return file.find(fmt::format("blk.{}.{}", block, name));
}

// Of a tensor of a block.
std::optional<int32_t> number_in(std::string_view name) {
  int32_t block = 0;
  if (!name.starts_with(kStem)) return std::nullopt;
  const auto [at, error] = std::from_chars(name.data() + kStem.size(), name.data() + name.size(), block);
  const bool is_number = error == std::errc() && at != name.data() + name.size() && *at == '.';
  return is_number && block >= 0 && block <= kMaxLayers ? std::optional(block) : std::nullopt;
}

// The last of those that is_it(block); else the last of all.
template <class IsIt>
const BlockSpec& last_block(const ArchSpec& model, IsIt&& is_it) {
  const auto found = std::find_if(model.blocks.rbegin(), model.blocks.rend(), is_it);
  return found == model.blocks.rend() ? model.blocks.back() : *found;
}

FfnSpec feed_forward(const formats::ModelFile& file, int32_t block, const ArchSpec& model) {
  const bool has_experts = tensor_of(file, block, "ffn_gate_inp.weight") != nullptr;
  FfnSpec ffn =
      last_block(model, [&](const BlockSpec& own) { return own.has_ffn() && own.ffn.is_moe() == has_experts; }).ffn;
  if (has_experts) return ffn;
  const TensorView* down = tensor_of(file, block, "ffn_down.weight");
  ffn.moe = {};
  ffn.shared_dim = 0;
  ffn.ffn_dim = down == nullptr ? 0 : static_cast<int32_t>(std::clamp<int64_t>(down->shape[1], 1, kMaxWidth));
  return ffn;
}

BlockSpec block_of(const formats::ModelFile& file, int32_t number, const ArchSpec& model) {
  BlockSpec block = last_block(model, [](const BlockSpec& own) { return own.has_attention && !own.shares_kv(); });
  block.delta = {};
  block.ssm = {};
  block.gated_conv = {};
  block.layer_dim = 0;
  block.has_attention = block.has_attention && tensor_of(file, number, "attn_output.weight") != nullptr;
  block.ffn = feed_forward(file, number, model);
  return block;
}

}  // namespace

std::optional<int32_t> find_prediction(const formats::ModelFile& file) {
  std::optional<int32_t> first;
  for (const TensorView& tensor : file.tensors()) {
    const std::optional<int32_t> block = tensor.name.ends_with(kEnd) ? number_in(tensor.name) : std::nullopt;
    if (block) first = std::min(*block, first.value_or(*block));
  }
  return first;
}

bool is_prediction_alone(const formats::ModelFile& file) {
  const std::optional<int32_t> head = find_prediction(file);
  return head && std::ranges::none_of(file.tensors(), [&](const TensorView& tensor) {
           return number_in(tensor.name).value_or(*head) < *head;
         });
}

Result<ArchSpec> prediction_arch(const formats::ModelFile& file, const ArchSpec& model) {
  const std::optional<int32_t> block = find_prediction(file);
  if (!block) {
    return refused(file,
                   "no head for multi-token prediction is in it (tensors \"blk.N.nextn.*\"); name a file that has one "
                   "with --draft, or draft without one");
  }
  CANDOR_ASSIGN(const Family* family, family_of(file));
  if (family->name != model.family) {
    return refused(file, fmt::format("a head for multi-token prediction of a {} model, but the model is of family {}",
                                     family->name, model.family));
  }
  ArchSpec head = model;
  head.blocks = {block_of(file, *block, model)};
  head.first_block = *block;
  head.n_prediction_blocks = 0;
  head.embed = {.scale = model.embed.scale, .joins_vectors = true, .join_norm = model.final_norm};
  if (model.has_layer_norm_prediction) head.final_norm.kind = backend::NormKind::kLayer;
  head.head.is_own = is_prediction_alone(file) && tensor_of(file, *block, "nextn.shared_head_head.weight") != nullptr;
  head.head.tied = head.head.tied && !head.head.is_own;
  return head;
}

}  // namespace candor::model
