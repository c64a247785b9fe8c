#pragma once
// How a family is published on the hub: config.json's model_type, what its tensors are called there, and what has to be
// done to them so that they are those of a GGUF file of the same family. Data of the families; read by hub_folder.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"

namespace candor::model {

enum class HubChange : uint8_t {
  kNone,
  kPairRows,    // rows of each head from rotary halves to interleaved pairs
  kWiden,       // to f32, as GGUF keeps routers
  kAddOne,      // gains that are stored as their distance from 1
  // The same order, and q and k also from rotary halves to interleaved pairs; that alone, of rows in that order.
  kSplitPairedHeads,
  kPairJoined,
  kTranspose,   // [in, out] to [out, in]
  kSplitHeads,  // rows as [K/V head][its q heads, k, v] to all q, all k, all v
  kDropTwoRows,  // a table whose first two rows stand for no position
  // Of a delta rule, whose value heads stand there by key head and here in turn (hub_delta.h): all rows; those behind
  // the rows of q and k; these of a convolution's taps, which have a dimension more; elements of -e^x; columns. Then
  // taps and rates whose order stays, and rows of q, k, v and gate by key head that become two tensors, of which the
  // second has no name there.
  kTileRows,
  kTileValues,
  kTileTaps,
  kTileRates,
  kTileColumns,
  kTaps,
  kRates,
  kSplitMixed,
  kSplitLatent,  // of each head the rows of its key, then of its value: two tensors, keys' transposed (hub_latent.h)
  // Of gated convolutions and state spaces (hub_state.h), all f32: taps without their middle dimension; vectors as
  // columns, and those of -e^x, which may stand there as [1, 1, n, 1]; a norm's gains as a row for each group.
  kPlainTaps,
  kColumn,
  kRateColumn,
  kDeepRates,
  kGroupRows,
  kScaled,  // rows times factors of config.json (HubForm::factors)
  kSplitRows,    // the first and the second half of the rows, of each expert where there are any: two tensors
  kWidenRow      // to f32, and from one row to a vector
};
constexpr bool divides_rows(HubChange change) {
  return change == HubChange::kSplitMixed || change == HubChange::kSplitRows;
}
constexpr bool makes_two(HubChange change) {
  return change == HubChange::kSplitMixed || change == HubChange::kSplitLatent || change == HubChange::kSplitRows;
}

// Rows of heads change places, whole and as they are.
constexpr bool moves_rows(HubChange change) {
  return change == HubChange::kPairRows || change == HubChange::kSplitPairedHeads ||
         change == HubChange::kPairJoined || change == HubChange::kSplitHeads;
}

struct HubTensor {
  std::string_view name;  // here, "*" for the block and "#" for the expert
  std::string_view hub;   // there
  HubChange change = HubChange::kNone;
};

// Experts that the hub keeps in one tensor for all (hub_experts.h), with "_bias", or "_blocks" and "_scales", behind
// it.
struct HubExperts {
  std::string_view hub;
  // Here, without ".weight" and ".bias": of outputs 0, 2, ... and 1, 3, ..., or of the first and the second half; the
  // second is "" where there is one alone.
  std::array<std::string_view, 2> names;
  bool are_halves = false;
  size_t n_parts() const { return names[1].empty() ? 1 : 2; }
};

// n_rows rows of a tensor, the next ones, are multiplied by one factor, then by another.
struct RowFactors {
  int64_t n_rows = 0;
  float first = 1.0f;
  float second = 1.0f;
};

// A folder of more than text: its config.json holds the form's as "text_config", and the text's tensors begin with
// "model.language_model." or "language_model.". The rest is left out.
struct HubOuter {
  std::string_view model_type;
  std::span<const std::string_view> left_out;  // how the names of other tensors begin
  std::string_view media;                      // what they are for: "images, audio"
  std::string_view text_type = {};             // of text_config, where it isn't the form's
};

// For a form that is read alone, because another says the same.
constexpr bool suits_none(const ArchSpec&) {
  return false;
}

// Of several forms of one model_type, one after another, the last knows every name.
struct HubForm {
  std::string_view model_type;    // config.json
  std::string_view architecture;  // its class in the `transformers` library
  std::string_view activation;    // that config.json must name; "" where it names none
  std::span<const HubTensor> tensors;
  std::span<const std::string_view> ignored = {};  // buffers that can be computed
  // Keys of the family's own, from config.json to "<prefix>." and back; may be nullptr.
  Result<void> (*read)(const nlohmann::json& config, std::string_view prefix, formats::MetaList& metadata) = nullptr;
  void (*write)(const ArchSpec& spec, nlohmann::ordered_json& config) = nullptr;
  std::span<const HubExperts> experts = {};
  // Of tensors of kScaled, by their names there. Written are tensors that were multiplied, and factors of 1.
  Result<std::vector<RowFactors>> (*factors)(const nlohmann::json& config, std::string_view name) = nullptr;
  bool has_old_keys = false;  // config.json says n_embd, n_layer or d_model, num_layers, and the like
  bool reads_mscale = false;  // of YaRN: by `read`
  bool (*reads)(const nlohmann::json& config) = nullptr;  // is it this form's? nullptr: every one of the model_type
  bool reads_alpha = false;   // of "dynamic": the base grows by its power of the heads' width
  bool (*suits)(const ArchSpec& spec) = nullptr;  // is a model written so? nullptr: where its tensors allow it
  std::span<const HubOuter> outer = {};
  std::string_view not_computed = {};  // what `ignored` is for, where it is more than buffers
};

}  // namespace candor::model
