#include "model/families/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "formats/quote.h"
#include "model/eagle.h"
#include "model/families/missing.h"
#include "model/model.h"
#include "model/prediction.h"

namespace candor::model {

std::span<const Family> families() {
  static const std::array kFamilies = {
      llama_family(),    qwen2_family(),    qwen3_family(),    qwen3moe_family(),   gemma_family(),   gemma2_family(),
      qwen2vl_family(),  qwen3vl_family(),  qwen3vlmoe_family(),
      gemma3_family(),   phi3_family(),     granite_family(),  gpt2_family(),       olmo2_family(),   smollm3_family(),
      bloom_family(),    xglm_family(),     gpt_oss_family(),  starcoder2_family(), gptneox_family(), gptj_family(),
      phi2_family(),     stablelm_family(), falcon_family(),   command_r_family(),  cohere2_family(), olmo_family(),
      olmoe_family(),    mpt_family(),      opt_family(),      starcoder_family(),  glm4_family(),    seed_oss_family(),
      nemotron_family(), arcee_family(),    ernie4_5_family(), exaone4_family(),    chatglm_family(),  qwen35_family(),
      qwen35moe_family(), qwen3next_family(), deepseek2_family(),
      glm4moe_family(),  qwen2moe_family(), minimax_m2_family(),
      dots1_family(),    mistral3_family(), internlm2_family(), baichuan_family(), minicpm_family(),
      lfm2_family(),     lfm2moe_family(),  granitehybrid_family(),
      falcon_h1_family(), nemotron_h_family(), nemotron_h_moe_family(), kimi_linear_family(),
      gemma4_family(),  llama4_family(),    mistral4_family(), ernie4_5_moe_family(),
      llama_embed_family(),
      hunyuan_dense_family(), hunyuan_moe_family(), granitemoe_family(), exaone_moe_family(),
      bamba_family(),   olmo_hybrid_family(), vaultgemma_family(), flexolmo_family(), youtu_family(),
      persimmon_family(), gptneo_family(), nanochat_family(), afmoe_family(),
      bert_family(), mpnet_family(), nomic_bert_family(), nomic_bert_moe_family(), gte_family(), jina_bert_v2_family(), jina_bert_v3_family(),
      modern_bert_family(), gemma_embedding_family(),
  };
  return kFamilies;
}

const Family* find_family(std::string_view name) {
  const auto row = std::ranges::find(families(), name, &Family::name);
  return row == families().end() ? nullptr : &*row;
}

Result<const Family*> family_of(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const std::optional<std::string_view> type, formats::meta_string(file, "general.type"));
  if (type == "adapter") {
    return fail(ErrorKind::kUnsupported,
                "this is an adapter and no model: name its base model as the model, and this file with --adapter; or "
                "make one model of both (candor merge)");
  }
  if (type == "imatrix") {
    return fail(ErrorKind::kUnsupported,
                "this is an importance matrix and no model: give it to candor quantize with --imatrix");
  }
  CANDOR_ASSIGN(const std::optional<std::string_view> name, formats::meta_string(file, "general.architecture"));
  if (!name) {
    return fail(ErrorKind::kInvalidInput,
                "metadata key \"general.architecture\" is absent: the file names no model "
                "architecture");
  }
  if (*name == eagle3_family().name) {
    return fail(ErrorKind::kUnsupported,
                "this is an EAGLE-3 head and no model: name its model as the model, and this with --draft eagle:");
  }
  const Family* family = find_family(*name);
  if (family != nullptr) return family;
  if (const std::string_view need = need_of(*name); !need.empty()) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"general.architecture\" is {}, which is not supported{}",
                            formats::in_quotes(*name), need));
  }
  return fail(ErrorKind::kUnsupported, fmt::format("metadata key \"general.architecture\" is {}, an architecture that "
                                                   "is not supported; supported: {}",
                                                   formats::in_quotes(*name), supported_families()));
}

std::string supported_families() {
  std::string names;
  for (const Family& family : families()) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

Result<ArchSpec> read_arch(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const Family* family, family_of(file));
  if (is_prediction_alone(file)) {
    return fail(ErrorKind::kUnsupported,
                "this is a head for multi-token prediction and no model: name its model as the model, and this file "
                "with --draft");
  }
  CANDOR_ASSIGN(ArchSpec spec, family->read(file));
  const bool has_head = find_prediction(file) == static_cast<int32_t>(spec.blocks.size());
  if (has_head) spec.n_prediction_blocks = std::max(spec.n_prediction_blocks, 1);
  return spec;
}

}  // namespace candor::model
