// MPNet: BERT's blocks with RoBERTa's positions, and a number for each distance between two tokens that is added to
// their score. Song et al., 2020.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/encoder_parts.h"

namespace candor::model {
namespace mpnet {
namespace {

constexpr std::array kOwnTensors = {TensorName{TensorRole::kPositions, "position_embd.weight"},
                                    TensorName{TensorRole::kDistanceBias, "blk.*.attn_distance_bias"}};
constexpr auto kTensors = join(kEncoderTensors, kUngatedEncoderTensors, kUngatedBiases, kOwnTensors);

constexpr std::array kHubMpnet = {
    HubTensor{"token_embd.weight", "mpnet.embeddings.word_embeddings.weight"},
    HubTensor{"position_embd.weight", "mpnet.embeddings.position_embeddings.weight", HubChange::kDropTwoRows},
    HubTensor{"token_embd_norm.weight", "mpnet.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "mpnet.embeddings.LayerNorm.bias"},
    HubTensor{"blk.*.attn_distance_bias", "mpnet.encoder.relative_attention_bias.weight", HubChange::kBuckets},
    HubTensor{"blk.*.attn_q.weight", "mpnet.encoder.layer.*.attention.attn.q.weight"},
    HubTensor{"blk.*.attn_q.bias", "mpnet.encoder.layer.*.attention.attn.q.bias"},
    HubTensor{"blk.*.attn_k.weight", "mpnet.encoder.layer.*.attention.attn.k.weight"},
    HubTensor{"blk.*.attn_k.bias", "mpnet.encoder.layer.*.attention.attn.k.bias"},
    HubTensor{"blk.*.attn_v.weight", "mpnet.encoder.layer.*.attention.attn.v.weight"},
    HubTensor{"blk.*.attn_v.bias", "mpnet.encoder.layer.*.attention.attn.v.bias"},
    HubTensor{"blk.*.attn_output.weight", "mpnet.encoder.layer.*.attention.attn.o.weight"},
    HubTensor{"blk.*.attn_output.bias", "mpnet.encoder.layer.*.attention.attn.o.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "mpnet.encoder.layer.*.attention.LayerNorm.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "mpnet.encoder.layer.*.attention.LayerNorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "mpnet.encoder.layer.*.intermediate.dense.weight"},
    HubTensor{"blk.*.ffn_up.bias", "mpnet.encoder.layer.*.intermediate.dense.bias"},
    HubTensor{"blk.*.ffn_down.weight", "mpnet.encoder.layer.*.output.dense.weight"},
    HubTensor{"blk.*.ffn_down.bias", "mpnet.encoder.layer.*.output.dense.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "mpnet.encoder.layer.*.output.LayerNorm.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "mpnet.encoder.layer.*.output.LayerNorm.bias"},
    HubTensor{"cls.weight", "classifier.dense.weight"},
    HubTensor{"cls.bias", "classifier.dense.bias"},
    HubTensor{"cls.output.weight", "classifier.out_proj.weight"},
    HubTensor{"cls.output.bias", "classifier.out_proj.bias"},
};
constexpr auto kHubTensors = join(kHubMpnet, kHubClassifier);
// Of the head that guesses words, a pooler that sentence-transformers does not use, and a buffer.
constexpr std::string_view kIgnored[] = {"mpnet.embeddings.position_ids", "mpnet.pooler.dense.weight",
                                         "mpnet.pooler.dense.bias",       "lm_head.bias",
                                         "lm_head.dense.weight",          "lm_head.dense.bias",
                                         "lm_head.layer_norm.weight",     "lm_head.layer_norm.bias",
                                         "lm_head.decoder.weight",        "lm_head.decoder.bias"};

// Positions begin behind padding's.
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  constexpr uint64_t kRowsBefore = 2;
  CANDOR_ASSIGN(const uint64_t rows, hub_count(config, "max_position_embeddings"));
  if (rows <= kRowsBefore) return config.bad("max_position_embeddings", rows, "3 or more");
  metadata.add(fmt::format("{}.context_length", prefix), rows - kRowsBefore);
  CANDOR_ASSIGN([[maybe_unused]] const uint64_t buckets, hub_count(config, "relative_attention_num_buckets"));
  return read_hub_encoder(config, prefix, metadata);
}

constexpr HubForm kHub[] = {{.model_type = "mpnet",
                             .architecture = "MPNetModel",
                             .activation = "gelu",
                             .tensors = kHubTensors,
                             .ignored = kIgnored,
                             .read = read_hub,
                             .suits = suits_none,
                             .not_computed = "guessing words"}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_encoder(Hparams(file, "mpnet")));
  spec.embed.has_positions = true;
  const TensorView* biases = file.find("blk.0.attn_distance_bias");
  const int64_t n_heads = spec.blocks.front().attn.n_heads;
  const int64_t n = biases == nullptr ? 0 : biases->shape.n_elements() / n_heads;
  constexpr int64_t kMostReach = 1 << 20;
  if (n < 3 || n % 2 == 0 || n / 2 > kMostReach) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor \"blk.0.attn_distance_bias\": {}; expected of each of {} "
                            "heads an odd number of distances",
                            biases == nullptr ? "is missing" : to_string(biases->shape), n_heads));
  }
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.attn.bias_reach = static_cast<int32_t>(n / 2);
  }
  return spec;
}

}  // namespace
}  // namespace mpnet

Family mpnet_family() {
  using namespace mpnet;
  return {"mpnet", read, kTensors, {}, kHub};
}

}  // namespace candor::model
