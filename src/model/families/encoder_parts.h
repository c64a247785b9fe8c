#pragma once
// What encoders after BERT's pattern share (Devlin et al., 2019): every token sees all others, the stream is normed
// after each addition, and what comes out are hidden states.

#include "model/families/common.h"

namespace candor::model {

inline constexpr std::array kEncoderStem = {
    TensorName{TensorRole::kEmbedding, "token_embd.weight"},
    TensorName{TensorRole::kTokenTypes, "token_types.weight", kOptional},
    TensorName{TensorRole::kEmbedNorm, "token_embd_norm.weight"},
    TensorName{TensorRole::kEmbedNormBias, "token_embd_norm.bias", kOptional},
};
// The head that guesses masked words, where a model weighs words by it (SPLADE).
inline constexpr std::array kMaskedHeadTensors = {
    TensorName{TensorRole::kWordDense, "mlm.weight", kOptional},
    TensorName{TensorRole::kWordDenseBias, "mlm.bias", kOptional},
    TensorName{TensorRole::kWordNorm, "mlm.norm.weight", kOptional},
    TensorName{TensorRole::kWordNormBias, "mlm.norm.bias", kOptional},
    TensorName{TensorRole::kHead, "output.weight", kOptional},
    TensorName{TensorRole::kHeadBias, "output.bias", kOptional},
};
inline constexpr std::array kStreamNormTensors = {
    TensorName{TensorRole::kAttnPostNorm, "blk.*.attn_output_norm.weight"},
    TensorName{TensorRole::kAttnPostNormBias, "blk.*.attn_output_norm.bias", kOptional},
    TensorName{TensorRole::kFfnPostNorm, "blk.*.layer_output_norm.weight"},
    TensorName{TensorRole::kFfnPostNormBias, "blk.*.layer_output_norm.bias", kOptional},
};
// One or the other.
inline constexpr std::array kEitherQkvTensors = {
    TensorName{TensorRole::kQkv, "blk.*.attn_qkv.weight", kOptional},
    TensorName{TensorRole::kQkvBias, "blk.*.attn_qkv.bias", kOptional},
};
inline constexpr auto kEncoderTensors =
    join(kEncoderStem, kMaskedHeadTensors, kStreamNormTensors, kEitherQkvTensors, kAttnTensors, kAttnBiases);
inline constexpr std::array kUngatedEncoderTensors = {
    TensorName{TensorRole::kUp, "blk.*.ffn_up.weight"},
    TensorName{TensorRole::kDown, "blk.*.ffn_down.weight"},
};

// LayerNorms over the stream, a table of types where the file has one, no positions, an ungated exact GELU; a head
// where the file has one that guesses masked words.
Result<ArchSpec> read_encoder(const Hparams& hparams);

// What other readers of such files want to know: how many types of tokens, and that no token is hidden from others.
Result<void> read_hub_encoder(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata);

// All but BERT's positions and feed-forward.
inline constexpr std::array kHubBertAttn = {
    HubTensor{"token_embd.weight", "bert.embeddings.word_embeddings.weight"},
    HubTensor{"token_types.weight", "bert.embeddings.token_type_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "bert.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "bert.embeddings.LayerNorm.bias"},
    HubTensor{"blk.*.attn_q.weight", "bert.encoder.layer.*.attention.self.query.weight"},
    HubTensor{"blk.*.attn_q.bias", "bert.encoder.layer.*.attention.self.query.bias"},
    HubTensor{"blk.*.attn_k.weight", "bert.encoder.layer.*.attention.self.key.weight"},
    HubTensor{"blk.*.attn_k.bias", "bert.encoder.layer.*.attention.self.key.bias"},
    HubTensor{"blk.*.attn_v.weight", "bert.encoder.layer.*.attention.self.value.weight"},
    HubTensor{"blk.*.attn_v.bias", "bert.encoder.layer.*.attention.self.value.bias"},
    HubTensor{"blk.*.attn_output.weight", "bert.encoder.layer.*.attention.output.dense.weight"},
    HubTensor{"blk.*.attn_output.bias", "bert.encoder.layer.*.attention.output.dense.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "bert.encoder.layer.*.attention.output.LayerNorm.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "bert.encoder.layer.*.attention.output.LayerNorm.bias"},
    HubTensor{"cls.weight", "bert.pooler.dense.weight"},
    HubTensor{"cls.bias", "bert.pooler.dense.bias"},
};

inline constexpr std::array kHubClassifier = {
    HubTensor{"cls.output.weight", "classifier.weight"},
    HubTensor{"cls.output.bias", "classifier.bias"},
};

}  // namespace candor::model
