#include "model/known_models.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

namespace candor::model {
namespace {

struct Dense {
  int32_t n_layers, dim, n_heads, n_kv_heads, head_dim, ffn_dim, vocab;
  bool is_tied = false;
};

ArchSpec dense(const Dense& shape) {
  BlockSpec block;
  block.attn.n_heads = shape.n_heads;
  block.attn.n_kv_heads = shape.n_kv_heads;
  block.attn.head_dim = shape.head_dim;
  block.ffn.ffn_dim = shape.ffn_dim;
  ArchSpec spec;
  spec.dim = shape.dim;
  spec.vocab = shape.vocab;
  spec.head.tied = shape.is_tied;
  spec.blocks.assign(static_cast<size_t>(shape.n_layers), block);
  return spec;
}

struct Experts {
  int32_t n_experts, n_used, ffn_dim;
  int32_t shared_dim = 0;
  int32_t n_dense_blocks = 0;  // at the beginning
  bool is_shared_gated = false;
};

ArchSpec with_experts(ArchSpec spec, const Experts& experts) {
  for (size_t i = static_cast<size_t>(experts.n_dense_blocks); i < spec.blocks.size(); ++i) {
    FfnSpec& ffn = spec.blocks[i].ffn;
    ffn.ffn_dim = experts.ffn_dim;
    ffn.moe.n_experts = experts.n_experts;
    ffn.moe.n_used = experts.n_used;
    ffn.shared_dim = experts.shared_dim;
    ffn.is_shared_gated = experts.is_shared_gated;
  }
  return spec;
}

// Windows of all blocks but the last of every n.
ArchSpec with_windows(ArchSpec spec, int32_t window_tokens, size_t n) {
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (n == 0 || i % n != n - 1) spec.blocks[i].attn.window_tokens = window_tokens;
  }
  return spec;
}

ArchSpec gpt2() {
  ArchSpec spec = dense({12, 768, 12, 12, 64, 3072, 50257, true});
  for (BlockSpec& block : spec.blocks) block.ffn.is_gated = false;
  spec.embed.has_positions = true;
  spec.max_positions = 1024;
  return spec;
}

ArchSpec deepseek_v3() {
  ArchSpec spec = dense({61, 7168, 128, 1, 576, 18432, 129280});
  for (BlockSpec& block : spec.blocks) {
    block.attn.latent_dim = 512;
    block.latent = {.query_rank = 1536, .head_dim = 128, .value_dim = 128};
  }
  return with_experts(std::move(spec), {.n_experts = 256, .n_used = 8, .ffn_dim = 2048, .shared_dim = 2048,
                                        .n_dense_blocks = 3});
}

// Three of four blocks are recurrent; the others' queries have gates.
ArchSpec qwen3_next() {
  ArchSpec spec = dense({48, 2048, 16, 2, 256, 512, 151936});
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    spec.blocks[i].has_head_gate = true;
    if (i % 4 == 3) continue;
    spec.blocks[i].has_attention = false;
    spec.blocks[i].delta = {.n_k_heads = 16, .n_v_heads = 32, .k_dim = 128, .v_dim = 128, .n_taps = 4};
  }
  return with_experts(std::move(spec),
                      {.n_experts = 512, .n_used = 10, .ffn_dim = 512, .shared_dim = 512, .is_shared_gated = true});
}

constexpr KnownModel kModels[] = {
    {"gpt2", 124.4e6, gpt2},
    {"llama-3.2-1b", 1.236e9, [] { return dense({16, 2048, 32, 8, 64, 8192, 128256, true}); }},
    {"llama-3.2-3b", 3.213e9, [] { return dense({28, 3072, 24, 8, 128, 8192, 128256, true}); }},
    {"llama-2-7b", 6.738e9, [] { return dense({32, 4096, 32, 32, 128, 11008, 32000}); }},
    {"mistral-7b", 7.242e9, [] { return with_windows(dense({32, 4096, 32, 8, 128, 14336, 32000}), 4096, 0); }},
    {"qwen2.5-7b", 7.616e9, [] { return dense({28, 3584, 28, 4, 128, 18944, 152064}); }},
    {"llama-3.1-8b", 8.030e9, [] { return dense({32, 4096, 32, 8, 128, 14336, 128256}); }},
    {"qwen3-8b", 8.191e9, [] { return dense({36, 4096, 32, 8, 128, 12288, 151936}); }},
    {"gemma-2-9b", 9.242e9,
     [] { return with_windows(dense({42, 3584, 16, 8, 256, 14336, 256000, true}), 4096, 2); }},
    {"llama-2-13b", 13.016e9, [] { return dense({40, 5120, 40, 40, 128, 13824, 32000}); }},
    {"phi-4", 14.660e9, [] { return dense({40, 5120, 40, 10, 128, 17920, 100352}); }},
    {"gpt-oss-20b", 20.91e9,
     [] {
       return with_experts(with_windows(dense({24, 2880, 64, 8, 64, 2880, 201088}), 128, 2), {32, 4, 2880});
     }},
    {"qwen3-30b-a3b", 30.532e9,
     [] { return with_experts(dense({48, 2048, 32, 4, 128, 768, 151936}), {128, 8, 768}); }},
    {"qwen2.5-32b", 32.764e9, [] { return dense({64, 5120, 40, 8, 128, 27648, 152064}); }},
    {"mixtral-8x7b", 46.703e9,
     [] { return with_experts(dense({32, 4096, 32, 8, 128, 14336, 32000}), {8, 2, 14336}); }},
    {"llama-2-70b", 68.977e9, [] { return dense({80, 8192, 64, 8, 128, 28672, 32000}); }},
    {"llama-3.1-70b", 70.554e9, [] { return dense({80, 8192, 64, 8, 128, 28672, 128256}); }},
    {"qwen2.5-72b", 72.706e9, [] { return dense({80, 8192, 64, 8, 128, 29568, 152064}); }},
    {"qwen3-next-80b-a3b", 79.67e9, qwen3_next},
    {"gpt-oss-120b", 116.83e9,
     [] {
       return with_experts(with_windows(dense({36, 2880, 64, 8, 64, 2880, 201088}), 128, 2), {128, 4, 2880});
     }},
    {"qwen3-235b-a22b", 235.09e9,
     [] { return with_experts(dense({94, 4096, 64, 4, 128, 1536, 151936}), {128, 8, 1536}); }},
    {"llama-3.1-405b", 405.85e9, [] { return dense({126, 16384, 128, 8, 128, 53248, 128256}); }},
    {"deepseek-v3", 671.03e9, deepseek_v3},
};

bool is_plain(const ArchSpec& spec) {
  return std::ranges::none_of(spec.blocks, [](const BlockSpec& block) {
    return block.ffn.is_moe() || block.is_recurrent() || block.attn.window_tokens > 0;
  });
}

}  // namespace

std::span<const KnownModel> known_models() {
  return kModels;
}

const KnownModel* find_known_model(std::string_view name) {
  const auto* found = std::ranges::find(kModels, name, &KnownModel::name);
  return found == std::end(kModels) ? nullptr : found;
}

const KnownModel& nearest_dense_model(double n_parameters) {
  const KnownModel* nearest = nullptr;
  const auto distance = [n_parameters](const KnownModel& model) {
    return std::abs(std::log(model.n_parameters / n_parameters));
  };
  for (const KnownModel& model : kModels) {
    if (!is_plain(model.spec())) continue;
    if (nearest == nullptr || distance(model) < distance(*nearest)) nearest = &model;
  }
  return *nearest;
}

}  // namespace candor::model
