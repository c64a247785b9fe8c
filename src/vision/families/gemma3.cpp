// Gemma 3: an image is scaled to one square; a SigLIP tower, the mean of each few rows, a norm and one matrix. The
// image's rows see one another in the text model. Gemma Team, 2025.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace gemma3 {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<image_soft_token>", "<pad>"};
constexpr std::string_view kModelTypes[] = {"gemma3"};
constexpr std::array kOwnNames = {HubName{"mm.input_projection.weight", "mm_input_projection_weight"},
                                  HubName{"mm.soft_emb_norm.weight", "mm_soft_emb_norm.weight"}};
constexpr auto kNames = model::join(kHubVit, kHubFinalNorm, kOwnNames);
constexpr TowerDefaults kDefaults = {768, 3072, 12, 12, 224, 16, 1e-6, kTanhGelu};
constexpr int32_t kUsualPool = 4;

std::string expand(const image::Prepared&, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  return "\n\n<start_of_image>" + repeated(row, rows_of_tiles.front()) + "<end_of_image>\n\n";
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGelu));
  CANDOR_ASSIGN(const int32_t n, hparams.int_or("projector.scale_factor", kUsualPool, {1, 64}));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.input_projection.weight"));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  spec.family = "gemma3";
  spec.recipe.layout = image::FixedSize{{side, side}};
  spec.recipe.filter = image::Filter::kBilinear;
  spec.regroup = {RegroupKind::kAverage, n};
  spec.projector.n_in = spec.tower.dim;
  spec.projector.layers = {{.kind = RowLayerKind::kNorm,
                            .weight = "mm.soft_emb_norm.weight",
                            .norm = {backend::NormKind::kRms, spec.tower.final_norm.epsilon}},
                           {.weight = "mm.input_projection.weight", .n_out = width}};
  spec.prompt = {.mark = "<start_of_image>", .row_tokens = kRowTokens, .expand = expand, .is_seen_whole = true};
  return spec;
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_tower(config, processor, "gemma3", kDefaults, metadata));
  CANDOR_ASSIGN(const int32_t n_rows, hub_int(config, "mm_tokens_per_image", 256, 1 << 14));
  const auto number = [&](const char* key) { return static_cast<int32_t>(std::get<uint64_t>(*metadata.find(key))); };
  const int32_t grid = number("clip.vision.image_size") / number("clip.vision.patch_size");
  const auto rows_of_side = static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(n_rows))));
  if (rows_of_side * rows_of_side != n_rows || rows_of_side > grid || grid % rows_of_side != 0) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'config.json': \"mm_tokens_per_image\" is {}, expected the square of a divisor of {}, which "
                    "is the number of patches in a line",
                    n_rows, grid));
  }
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(grid / rows_of_side));
  return {};
}

}  // namespace
}  // namespace gemma3

VisionFamily gemma3_family() {
  using namespace gemma3;
  return {.projector = "gemma3",
          .read = read,
          .model_types = kModelTypes,
          .stems = kHubStems,
          .names = kNames,
          .ignored = kHubPooling,
          .read_hub = read_hub,
          .gains_less_one = "mm.soft_emb_norm.weight",
          .transposed = "mm.input_projection.weight"};
}

}  // namespace candor::vision
