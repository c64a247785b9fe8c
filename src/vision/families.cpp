#include "vision/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/quote.h"

namespace candor::vision {

std::span<const VisionFamily> families() {
  static const std::array kFamilies = {idefics2_family(),       idefics3_family(), gemma3_family(),   gemma4_family(),
                                       gemma4_unified_family(), llava_family(),    internvl_family(), lfm2_vl_family(),
                                       pixtral_family(),        llama4_family(),   qwen2vl_family(),  qwen25vl_family(),
                                       qwen3vl_family()};
  return kFamilies;
}

Result<const VisionFamily*> family_of(const formats::ModelFile& file) {
  CANDOR_ASSIGN(std::optional<std::string_view> name, formats::meta_string(file, "clip.projector_type"));
  if (!name) {
    CANDOR_ASSIGN(name, formats::meta_string(file, "clip.vision.projector_type"));
  }
  if (!name) {
    return fail(ErrorKind::kInvalidInput,
                "metadata key \"clip.projector_type\" is absent: the file does not say what its images become");
  }
  const auto row = std::ranges::find(families(), *name, &VisionFamily::projector);
  if (row != families().end()) return &*row;
  std::string known;
  for (const VisionFamily& family : families())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", family.projector);
  return fail(ErrorKind::kUnsupported, fmt::format("metadata key \"clip.projector_type\" is {}; supported: {}",
                                                   formats::in_quotes(*name), known));
}

const VisionFamily* find_hub_family(const std::string& model_type, const std::string& tower_type) {
  for (const std::string& type : {model_type + "/" + tower_type, model_type}) {
    const auto is_its = [&](const VisionFamily& family) {
      return std::ranges::find(family.model_types, type) != family.model_types.end();
    };
    const auto row = std::ranges::find_if(families(), is_its);
    if (row != families().end()) return &*row;
  }
  return nullptr;
}

}  // namespace candor::vision
