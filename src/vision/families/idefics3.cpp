// Idefics 3 and SmolVLM: an image is cut into square tiles, and read as a whole beside them; a SigLIP tower,
// neighbouring rows joined, one matrix. Laurencon et al., "Building and better understanding vision-language models",
// 2024.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace idefics3 {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<image>"};
constexpr std::string_view kModelTypes[] = {"idefics3", "smolvlm"};
constexpr std::string_view kStems[] = {"model.vision_model.", "model.connector."};
constexpr std::array kOwnNames = {HubName{"mm.model.fc.weight", "modality_projection.proj.weight"}};
constexpr auto kNames = model::join(kHubVit, kHubFinalNorm, kOwnNames);
// Of folders alone: whether an image is cut at all.
constexpr const char* kIsSplit = "candor.vision.is_split";
constexpr TowerDefaults kDefaults = {1152, 3072, 12, 16, 224, 32, 1e-6, kTanhGelu};

std::string expand(const image::Prepared& prepared, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  constexpr std::string_view kAround = "<fake_token_around_image>";
  const std::string rows = repeated(row, rows_of_tiles.front());
  std::string text;
  for (int32_t r = 0; r < prepared.n_tile_rows; ++r) {
    for (int32_t c = 0; c < prepared.n_tile_cols; ++c) {
      text += fmt::format("{}<row_{}_col_{}>{}", kAround, r + 1, c + 1, rows);
    }
    text += "\n";
  }
  if (prepared.n_tile_rows > 0) text += "\n";
  return text + fmt::format("{}<global-img>{}{}", kAround, rows, kAround);
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGelu));
  CANDOR_ASSIGN(const int32_t n, hparams.int_or("projector.scale_factor", 2, {1, 64}));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.model.fc.weight"));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  CANDOR_ASSIGN(const int32_t longest, hparams.int_or("preproc_image_size", side, {1, 16384}));
  spec.family = "idefics3";
  CANDOR_ASSIGN(const std::optional<bool> is_split, formats::meta_bool(file, kIsSplit));
  spec.recipe.layout =
      image::SquareTiles{.longest_edge = longest, .tile_side = side, .is_split = is_split.value_or(true)};
  spec.recipe.filter = image::Filter::kLanczos3;
  spec.regroup = {RegroupKind::kJoin, n};
  spec.projector.n_in = spec.regroup.width(spec.tower.dim);
  spec.projector.layers = {{.weight = "mm.model.fc.weight", .n_out = width}};
  spec.prompt = {.mark = "<image>", .row_tokens = kRowTokens, .expand = expand};
  return spec;
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_tower(config, processor, "idefics3", kDefaults, metadata));
  CANDOR_ASSIGN(const int32_t scale, hub_int(config, "scale_factor", 2, 64));
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(scale));
  CANDOR_ASSIGN(const int32_t longest, hub_int(processor.value("size", json::object()), "longest_edge", 1456, 16384));
  metadata.add("clip.vision.preproc_image_size", static_cast<uint64_t>(longest));
  const json is_split = processor.value("do_image_splitting", json(true));
  if (is_split.is_boolean()) metadata.add(kIsSplit, is_split.get<bool>());
  return {};
}

}  // namespace
}  // namespace idefics3

VisionFamily idefics3_family() {
  using namespace idefics3;
  return {.projector = "idefics3",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub};
}

}  // namespace candor::vision
