#pragma once
// What most families share, so that a family's file says only what is its own: the hyperparameters that all of them
// write, and lists of tensors (tensor_lists.h, hub_lists.h).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "backend/op_specs.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"
#include "model/families/families.h"
#include "model/families/hub_lists.h"
#include "model/families/tensor_lists.h"
#include "model/hparams.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_form.h"
#include "model/tensor_roles.h"

namespace candor::model {

// Sizes, norms, attention and a SiLU-gated feed-forward in every block; head tied where the file has no
// "output.weight", absent where "attention.causal" is false: such a model reads and writes nothing. norm decides which
// epsilon is read.
using AttentionReader = Result<backend::AttnSpec> (*)(const Hparams& hparams, int32_t dim, int32_t n_layers);
// least_ffn 0: some blocks may have no feed-forward.
Result<ArchSpec> read_decoder(const Hparams& hparams, backend::NormKind norm,
                              AttentionReader read_attn = read_attention, int32_t least_ffn = 1);

// The epsilon of the norms under the name that the family's config.json has for it.
void write_norm_epsilon(const ArchSpec& spec, const char* key, nlohmann::ordered_json& config);

// Experts in every block, each ffn_dim wide. A shared one is refused, unless the family has it.
Result<backend::MoeSpec> read_moe(const Hparams& hparams, bool has_shared = false);

// [n_layers]: blocks with a plain feed-forward among those with experts ("dense_layers", which folders alone have).
Result<std::vector<bool>> read_dense_blocks(const Hparams& hparams, size_t n_layers);
// From config.json's "decoder_sparse_step" and "mlp_only_layers", and back.
Result<void> read_hub_dense_blocks(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata);
void write_hub_dense_blocks(const ArchSpec& spec, nlohmann::ordered_json& config);

// "rope.dimension_sections" from rope_parameters' "mrope_section", where it is.
Result<void> read_hub_sections(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata);

// The same with a shared expert under a sigmoid, in every block of the spec that is not dense.
Result<void> add_experts_and_shared(const Hparams& hparams, ArchSpec& spec);

// Blocks for multi-token prediction are the last ones, which the file may lack, and not computed.
Result<void> leave_prediction(const Hparams& hparams, ArchSpec& spec);

// Blocks that see everything lose their window: by read_window_pattern(), where all blocks have it if nothing is said.
Result<void> drop_windows(const Hparams& hparams, ArchSpec& spec);

// [n_layers]: whether a block attends to its window only. From "attention.sliding_window_pattern" (one flag for each
// block, or n: every n-th block sees everything), or the family's own n.
Result<std::vector<bool>> read_window_pattern(const Hparams& hparams, int32_t n_layers, int32_t family_pattern);

}  // namespace candor::model
