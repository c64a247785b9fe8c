#pragma once
// What families share that mix attention blocks with recurrent ones (state spaces or gated delta rules): which blocks
// attend, the sizes of the recurrent layers, and how config.json spells both.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "backend/state_specs.h"
#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"
#include "model/hparams.h"
#include "model/hub/hub_form.h"
#include "model/tensor_roles.h"

namespace candor::model {

// [n_layers]: "attention.head_count_kv" is not 0.
Result<std::vector<bool>> read_attending(const Hparams& hparams, size_t n_layers);

// A size of config.json that must be there, 1 to kMaxWidth.
Result<uint64_t> require_hub_size(const HubConfig& config, const char* key);
Result<uint64_t> require_hub_size(const nlohmann::json& object, const char* key);

// "layer_types" as flags: whether each block attends. attends, keeps: the names of both kinds.
Result<std::vector<bool>> hub_attending(const HubConfig& config, std::span<const std::string_view> attends,
                                        std::span<const std::string_view> keeps);

// "attention.head_count_kv" as a list: config.json's number in blocks that attend, 0 in others.
Result<void> add_kv_heads(const HubConfig& config, std::string_view prefix, const std::vector<bool>& attending,
                          formats::MetaList& metadata);

// The tensors of a state space under GGUF's names: those that show one size before those that show several.
inline constexpr std::array kSsmTensors = {
    TensorName{TensorRole::kSsmRate, "blk.*.ssm_a"},
    TensorName{TensorRole::kSsmSkip, "blk.*.ssm_d"},
    TensorName{TensorRole::kSsmStepBias, "blk.*.ssm_dt.bias"},
    TensorName{TensorRole::kSsmNorm, "blk.*.ssm_norm.weight"},
    TensorName{TensorRole::kSsmOut, "blk.*.ssm_out.weight"},
    TensorName{TensorRole::kSsmTaps, "blk.*.ssm_conv1d.weight"},
    TensorName{TensorRole::kSsmTapsBias, "blk.*.ssm_conv1d.bias", Presence::kOptional},
    TensorName{TensorRole::kSsmIn, "blk.*.ssm_in.weight"},
};
// The same tensors in Hugging Face checkpoints that name them "mamba.".
inline constexpr std::array kHubMamba = {
    HubTensor{"blk.*.ssm_in.weight", "model.layers.*.mamba.in_proj.weight"},
    HubTensor{"blk.*.ssm_conv1d.weight", "model.layers.*.mamba.conv1d.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.ssm_conv1d.bias", "model.layers.*.mamba.conv1d.bias"},
    HubTensor{"blk.*.ssm_a", "model.layers.*.mamba.A_log", HubChange::kRateColumn},
    HubTensor{"blk.*.ssm_d", "model.layers.*.mamba.D", HubChange::kColumn},
    HubTensor{"blk.*.ssm_dt.bias", "model.layers.*.mamba.dt_bias"},
    HubTensor{"blk.*.ssm_norm.weight", "model.layers.*.mamba.norm.weight", HubChange::kGroupRows},
    HubTensor{"blk.*.ssm_out.weight", "model.layers.*.mamba.out_proj.weight"},
};

// Sizes of a state space from "ssm.*", which must divide each other.
Result<backend::SsmSpec> read_ssm(const Hparams& hparams);

// What config.json calls them.
struct SsmNames {
  const char* n_heads;
  const char* head_dim;
  const char* n_groups;
  const char* state_dim;
  const char* n_taps;
  const char* least_step = nullptr;  // of those that have it instead of "time_step_limit", which is then without effect
};
inline constexpr SsmNames kMambaNames = {"mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_d_state",
                                         "mamba_d_conv"};
// From config.json, and back; with the limits of steps. Projections with biases are refused by name.
Result<void> read_hub_ssm(const HubConfig& config, std::string_view prefix, const SsmNames& names,
                          formats::MetaList& metadata);
void write_hub_ssm(const ArchSpec& spec, const SsmNames& names, nlohmann::ordered_json& config);

// Sizes of a gated delta rule from "ssm.*", which must divide each other; from config.json, and back.
Result<backend::DeltaSpec> read_delta(const Hparams& hparams, backend::KeyHeads key_heads);
Result<void> read_hub_delta(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata);
void write_hub_delta(const ArchSpec& spec, nlohmann::ordered_json& config);

}  // namespace candor::model
