#pragma once
// The architectures that are known: one row each. A family says how to turn a file's metadata into an ArchSpec and what
// its tensors are called; nothing else knows families. To add one: a file beside this one, a declaration below, a row
// in families.cpp, a golden.

#include <span>
#include <string_view>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/hub/hub_form.h"
#include "model/tensor_roles.h"

namespace candor::model {

struct Family {
  std::string_view name;  // value of "general.architecture"
  Result<ArchSpec> (*read)(const formats::ModelFile& file);
  std::span<const TensorName> tensors;        // every tensor that the family may have
  std::span<const std::string_view> ignored;  // tensors that may stand in the file and are not uploaded
  std::span<const HubForm> hub;               // how it is published as safetensors
};

std::span<const Family> families();
const Family* find_family(std::string_view name);

// The family that a file names, or why it is refused.
Result<const Family*> family_of(const formats::ModelFile& file);

Family llama_family();
Family llama_embed_family();
Family qwen2_family();
Family qwen3_family();
Family qwen3moe_family();
Family qwen3vl_family();
Family qwen3vlmoe_family();
Family gemma2_family();
Family gemma3_family();
Family phi3_family();
Family granite_family();
Family gpt2_family();
Family olmo2_family();
Family smollm3_family();
Family bloom_family();
Family xglm_family();
Family gpt_oss_family();
Family gemma_family();
Family starcoder2_family();
Family gptneox_family();
Family gptj_family();
Family phi2_family();
Family stablelm_family();
Family falcon_family();
Family command_r_family();
Family cohere2_family();
Family olmo_family();
Family olmoe_family();
Family mpt_family();
Family opt_family();
Family starcoder_family();
Family glm4_family();
Family seed_oss_family();
Family nemotron_family();
Family arcee_family();
Family ernie4_5_family();
Family exaone4_family();
Family chatglm_family();
Family qwen35_family();
Family qwen35moe_family();
Family qwen3next_family();
Family deepseek2_family();
Family glm4moe_family();
Family qwen2moe_family();
Family qwen2vl_family();
Family minimax_m2_family();
Family dots1_family();
Family mistral3_family();
Family internlm2_family();
Family baichuan_family();
Family minicpm_family();
Family lfm2_family();
Family lfm2moe_family();
Family granitehybrid_family();
Family falcon_h1_family();
Family nemotron_h_family();
Family nemotron_h_moe_family();
Family kimi_linear_family();
Family gemma4_family();
Family llama4_family();
Family mistral4_family();
Family ernie4_5_moe_family();
Family hunyuan_dense_family();
Family hunyuan_moe_family();
Family granitemoe_family();
Family exaone_moe_family();
Family bamba_family();
Family olmo_hybrid_family();
Family vaultgemma_family();
Family flexolmo_family();
Family youtu_family();
Family persimmon_family();
Family gptneo_family();
Family nanochat_family();
Family afmoe_family();
Family bert_family();
Family mpnet_family();
Family nomic_bert_family();
Family nomic_bert_moe_family();
Family gte_family();
Family jina_bert_v2_family();
Family jina_bert_v3_family();
Family modern_bert_family();
Family gemma_embedding_family();

}  // namespace candor::model
