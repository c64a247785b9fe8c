#pragma once
// The projectors that are known, one row each: how a file's metadata becomes a VisionSpec, and how a folder names it
// all. To add one: a file in families/, a declaration below, a row in families.cpp, a golden.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"
#include "formats/model_file.h"
#include "vision/tower_folds.h"
#include "vision/vision_spec.h"

namespace candor::vision {

// "*" is the block's number. In a checkpoint a name begins with one of the family's stems.
struct HubName {
  std::string_view name;  // in an mmproj file
  std::string_view hub;
};

struct VisionFamily {
  std::string_view projector;  // value of "clip.projector_type"
  Result<VisionSpec> (*read)(const formats::ModelFile& file);
  // Of folders: config.json's model_type, with "/" and the tower's own behind it where several families share it; how
  // names of tensors begin and go on; those that nobody needs (of mmproj files: whole names); and keys of "clip.*" from
  // config.json and preprocessor_config.json.
  std::span<const std::string_view> model_types;
  std::span<const std::string_view> stems;
  std::span<const HubName> names;
  std::span<const std::string_view> ignored;
  Result<void> (*read_hub)(const nlohmann::json& config, const nlohmann::json& processor, formats::MetaList& metadata);
  // The tensor of a checkpoint lacks this: gains are stored as their distance from 1.
  std::string_view gains_less_one = {};
  std::string_view transposed = {};  // [in, out] in files of both kinds
  // The weight of patches has one part for each of two frames of a film; an image is both, so that their sum counts.
  bool has_frames = false;
  // A checkpoint's rotary pairs are the two halves of a head, an mmproj file's stand side by side.
  bool has_halves = false;
  bool has_channels_last = false;    // a checkpoint's patches are [y, x, channel], and their matrix is no convolution's
  bool has_positions_first = false;  // a checkpoint's tables of positions by axis are [positions, 2, D]
  // Of mmproj files: names (behind) that are others here.
  std::span<const HubName> file_names = {};
  // What is folded into other tensors. quick_gelu: where the file says neither "clip.use_gelu" nor "clip.use_silu".
  Folds folds = {};
};

std::span<const VisionFamily> families();
// By "clip.projector_type", or "clip.vision.projector_type". Refused, with those that are known, if it is another one.
Result<const VisionFamily*> family_of(const formats::ModelFile& file);
// By the model_type of a folder and that of its "vision_config"; nullptr where no tower is known.
const VisionFamily* find_hub_family(const std::string& model_type, const std::string& tower_type);

VisionFamily idefics2_family();
VisionFamily idefics3_family();
VisionFamily gemma3_family();
VisionFamily gemma4_family();
VisionFamily gemma4_unified_family();
VisionFamily llava_family();
VisionFamily internvl_family();
VisionFamily qwen25vl_family();
VisionFamily qwen3vl_family();
VisionFamily lfm2_vl_family();
VisionFamily pixtral_family();
VisionFamily llama4_family();
VisionFamily qwen2vl_family();

}  // namespace candor::vision
