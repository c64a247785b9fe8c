#include "model/families/encoder_parts.h"

namespace candor::model {

Result<ArchSpec> read_encoder(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kLayer));
  spec.is_bidirectional = true;
  spec.has_final_norm = false;
  spec.head = {};
  spec.head.is_of_masked = hparams.file().find("mlm.weight") != nullptr;
  spec.head.is_absent = !spec.head.is_of_masked;
  spec.head.tied = spec.head.is_of_masked && hparams.file().find("output.weight") == nullptr;
  if (spec.head.is_of_masked && hparams.file().find("mlm.norm.weight") == nullptr) {
    return fail(ErrorKind::kInvalidInput, "tensor \"mlm.norm.weight\" is missing, which stands behind \"mlm.weight\"");
  }
  spec.embed.has_norm = true;
  if (const TensorView* types = hparams.file().find("token_types.weight")) {
    constexpr int64_t kMostTypes = 1024;
    if (types->shape.n_dims != 2 || types->shape[0] < 1 || types->shape[0] > kMostTypes) {
      return fail(ErrorKind::kInvalidInput, "tensor \"token_types.weight\": shape " + to_string(types->shape) +
                                                "; expected a few rows, one for each type");
    }
    spec.embed.n_types = static_cast<int32_t>(types->shape[0]);
  }
  for (BlockSpec& block : spec.blocks) {
    block.wiring = Wiring::kStreamNorm;
    block.ffn.gate = backend::GateKind::kGeluErf;
    block.ffn.is_gated = false;
  }
  return spec;
}

Result<void> read_hub_encoder(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t n_types, hub_count(config, "type_vocab_size"));
  if (n_types > 0) metadata.add("tokenizer.ggml.token_type_count", n_types);
  metadata.add(std::string(prefix) + ".attention.causal", false);
  return {};
}

}  // namespace candor::model
