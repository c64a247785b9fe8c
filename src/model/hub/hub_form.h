#pragma once
// Describes, as constant data, a layout in which a model family is published on Hugging Face (a "form"; "hub" means
// Hugging Face everywhere in this folder): config.json's model_type, the names of the tensors in the checkpoint, and
// how each tensor differs from the one that a GGUF file of the family has. Each family has one HubForm or several.
//
// hub_folder.h reads checkpoints by a form, hub_writer.h writes them.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"

namespace candor::model {

// What has to be done to a checkpoint's tensor to make GGUF's of it; hub_writer.h does the reverse.
enum class HubChange : uint8_t {
  kNone,
  kPairRows,       // rows of each head from rotary halves to interleaved pairs
  kSwapHalves,     // rows of each head: the second half, then the first
  kSplitQuarters,  // rows as [quarter of the heads][q, v, k] to all q, all k, all v
  kWiden,          // to f32, as GGUF keeps routers
  kAddOne,         // gains that are stored as their distance from 1
  // kSplitHeads, and the rows of q and k also from rotary halves to interleaved pairs; and this alone, for rows that
  // are already in the order all q, all k, all v.
  kSplitPairedHeads,
  kPairJoined,
  kTranspose,    // [in, out] to [out, in]
  kSplitHeads,   // rows as [K/V head][its q heads, k, v] to all q, all k, all v
  kDropTwoRows,  // a table whose first two rows stand for no position
  // Delta rules: value heads are reordered from checkpoints' order, by key head, to GGUF's, in turn (hub_delta.h). What
  // is reordered: all rows; the rows behind those of q and k; these rows of a convolution's taps, which have one
  // dimension more; elements that become -e^x; columns. Then taps and rates whose order stays, and rows of q, k, v and
  // gate by key head that become two tensors, the second of which has no name in the checkpoint.
  kTileRows,
  kTileValues,
  kTileTaps,
  kTileRates,
  kTileColumns,
  kTaps,
  kRates,
  kSplitMixed,
  kSplitLatent,  // of each head the rows of its key, then of its value: two tensors, keys' transposed (hub_latent.h)
  // Gated convolutions and state spaces (hub_state.h), all f32: taps lose their middle dimension; vectors become
  // columns, and so do those of -e^x, which checkpoints may hold as [1, 1, n, 1]; a norm's gains become a row for each
  // group.
  kPlainTaps,
  kColumn,
  kRateColumn,
  kDeepRates,
  kGroupRows,
  kScaled,        // rows times factors of config.json (HubForm::factors)
  kSplitRows,     // the first and the second half of the rows, of each expert where there are any: two tensors
  kWidenRow,      // to f32, and from one row to a vector
  kStackRows,     // rows of all experts, one behind the other, as one matrix each
  kStackColumns,  // the same, each transposed
  kSwapInputs,    // columns: the second half, then the first
  kOffsets,       // i64, from how far each is behind its place to what it is (hub_eagle.h)
  kBuckets        // of distances [buckets, heads] to a vector of all distances for each block (hub_distances.h)
};
constexpr bool divides_rows(HubChange change) {
  return change == HubChange::kSplitMixed || change == HubChange::kSplitRows;
}
constexpr bool makes_two(HubChange change) {
  return change == HubChange::kSplitMixed || change == HubChange::kSplitLatent || change == HubChange::kSplitRows;
}

// Whether the change only moves whole rows of heads.
constexpr bool moves_rows(HubChange change) {
  return change == HubChange::kPairRows || change == HubChange::kSplitPairedHeads ||
         change == HubChange::kPairJoined || change == HubChange::kSplitHeads || change == HubChange::kSwapHalves ||
         change == HubChange::kSplitQuarters;
}
constexpr bool is_stacked(HubChange change) {
  return change == HubChange::kStackRows || change == HubChange::kStackColumns;
}
constexpr bool has_two_halves(HubChange change) {
  return change == HubChange::kPairRows || change == HubChange::kSwapHalves;
}

class HubConfig;

struct HubTensor {
  std::string_view name;  // in GGUF; "*" stands for the block's number and "#" for the expert's
  std::string_view hub;   // in the checkpoint
  HubChange change = HubChange::kNone;
};

// Experts that a checkpoint keeps in one tensor for all (hub_experts.h), whose name may be followed by "_bias", or by
// "_blocks" and "_scales".
struct HubExperts {
  std::string_view hub;
  // GGUF's names without ".weight" and ".bias": the tensor of outputs 0, 2, ... and that of 1, 3, ..., or those of the
  // first and the second half; the second is "" where there is only one.
  std::array<std::string_view, 2> names;
  bool are_halves = false;
  const char* n_in = nullptr;  // config.json's key; where it is the last dimension, inputs stand last (PartOrder)
  size_t n_parts() const { return names[1].empty() ? 1 : 2; }
};

// n_rows rows of a tensor, the next ones, are multiplied by one factor, then by another.
struct RowFactors {
  int64_t n_rows = 0;
  float first = 1.0f;
  float second = 1.0f;
};

// A checkpoint of a multimodal model: its config.json holds the text model's as "text_config", and the names of the
// text model's tensors begin with "model.language_model." or "language_model.". The other tensors are left out.
struct HubOuter {
  std::string_view model_type;
  std::span<const std::string_view> left_out;  // how the names of other tensors begin
  std::string_view media;                      // what they are for: "images, audio"
  std::string_view text_type = {};             // of text_config, where it isn't the form's
  bool may_be_flat = false;                    // the text's keys may stand beside the others, without "text_config"
};

// Of a block for multi-token prediction that is named apart (hub_prediction.h): the checkpoint's name, in which "*" is
// its number among such blocks, and the one that it would have behind the model's blocks, in which "*" is its number
// among all. With "." at their ends both are beginnings.
struct HubRename {
  std::string_view hub;
  std::string_view name;
};

// A key of config.json that says whether tensors are there, by their names in the checkpoint ("*" is the block).
struct HubFlag {
  const char* key;
  std::span<const std::string_view> tensors;
};

// HubForm::suits of a form that is only read, never written, because another form says the same.
constexpr bool suits_none(const ArchSpec&) {
  return false;
}

// One layout of a family's checkpoints. Among several forms of one model_type, which follow one another, the last one
// knows every tensor name.
struct HubForm {
  std::string_view model_type;    // config.json
  std::string_view architecture;  // its class in the `transformers` library
  std::string_view activation;    // that config.json must name; "" where it names none
  std::span<const HubTensor> tensors;
  std::span<const std::string_view> ignored = {};  // buffers that can be computed
  // Keys of the family's own, from config.json to "<prefix>." and back; may be nullptr.
  Result<void> (*read)(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) = nullptr;
  void (*write)(const ArchSpec& spec, nlohmann::ordered_json& config) = nullptr;
  std::span<const HubExperts> experts = {};
  // The factors of a tensor of kScaled, by its name in the checkpoint. The writer writes multiplied tensors, factors 1.
  Result<std::vector<RowFactors>> (*factors)(const HubConfig& config, std::string_view name) = nullptr;
  bool has_old_keys = false;  // config.json says n_embd, n_layer or d_model, num_layers, and the like
  bool (*reads)(const HubConfig& config) = nullptr;  // is it this form's? nullptr: every one of the model_type
  bool reads_alpha = false;   // of "dynamic": the base grows by its power of the heads' width
  bool (*suits)(const ArchSpec& spec) = nullptr;  // is a model written so? nullptr: where its tensors allow it
  std::span<const HubOuter> outer = {};
  std::string_view not_computed = {};  // what `ignored` is for, where it is more than buffers
  std::span<const HubFlag> flags = {};
  bool has_own_kinds = false;  // "layer_types" names others than windows and full attention: `read` reads them
  bool reads_partial = true;    // a share of each head is rotated; false: widths of their own say how much
  bool implies_partial = false;  // the share repeats what those widths say, which `read` checks
  std::span<const HubRename> prediction = {};
  std::string (*rename)(std::string_view name) = nullptr;  // of a tensor: the checkpoint's name to that of `tensors`
  bool is_head = false;  // of a head that drafts (model/eagle.h): without words, and without what models must have
};

}  // namespace candor::model
