#pragma once
// How a family is published on the hub: config.json's model_type, what its tensors are called there, and what has to be
// done to them so that they are those of a GGUF file of the same family. Data of the families; read by hub_folder.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"

namespace candor::model {

enum class HubChange : uint8_t {
  kNone,
  kPairRows,    // rows of each head from rotary halves to interleaved pairs
  kWiden,       // to f32, as GGUF keeps routers
  kAddOne,      // gains that are stored as their distance from 1
  kTranspose,   // [in, out] to [out, in]
  kSplitHeads,  // rows as [head][q, k, v] to [q, k, v][head]
};

struct HubTensor {
  std::string_view name;  // here, "*" for the block and "#" for the expert
  std::string_view hub;   // there
  HubChange change = HubChange::kNone;
};

struct HubForm {
  std::string_view model_type;    // config.json
  std::string_view architecture;  // its class in the `transformers` library
  std::string_view activation;    // that config.json must name; "" where it names none
  std::span<const HubTensor> tensors;
  std::span<const std::string_view> ignored = {};  // buffers that can be computed
  // Keys of the family's own, from config.json to "<prefix>." and back; may be nullptr.
  Result<void> (*read)(const nlohmann::json& config, std::string_view prefix, formats::MetaList& metadata) = nullptr;
  void (*write)(const ArchSpec& spec, nlohmann::ordered_json& config) = nullptr;
  bool has_old_keys = false;  // config.json says n_embd, n_layer or d_model, num_layers, and the like
};

}  // namespace candor::model
