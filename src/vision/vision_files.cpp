#include "vision/vision_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/companion_name.h"
#include "formats/json_text.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/tensor_copies.h"
#include "model/hub/hub_index.h"
#include "model/hub/hub_names.h"
#include "vision/families.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace {

namespace fs = std::filesystem;
using formats::safetensors::SafetensorsFile;
using nlohmann::json;

constexpr size_t kMaxConfigBytes = size_t{16} << 20;
constexpr std::string_view kDeepMergers = "deepstack_merger_list.";
constexpr std::string_view kPatches = "v.patch_embd.weight";
constexpr std::string_view kPixelNorm = "v.patch_norm.1.";
constexpr std::string_view kPositionTable = "v.position_embd.weight";
// GGUF files have them in f32.
constexpr std::string_view kWidened[] = {kPatches, kPositionTable, "mm.patch_merger.weight"};

// The tensors of a GGUF file or of a folder's shards, as the tower has them.
class TowerFile final : public formats::ModelFile {
 public:
  const formats::FileInfo& info() const override { return info_; }
  std::span<const formats::MetaEntry> metadata() const override { return metadata_.entries(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override {
    const formats::MetaValue* own = metadata_.find(key);
    return own != nullptr || !file_ ? own : file_->meta(key);
  }
  const TensorView* find(std::string_view name) const override {
    const auto found = std::ranges::find(tensors_, name, &TensorView::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  Result<void> check_intact() const override {
    if (file_) return file_->check_intact();
    for (const SafetensorsFile& shard : shards_) CANDOR_TRY(shard.check_intact());
    return {};
  }

  uint64_t copy_bytes() const override { return copies_.n_bytes(); }
  Result<void> make_copy(std::span<const std::byte> part) const override {
    CANDOR_ASSIGN([[maybe_unused]] const bool is_made, copies_.make(part));
    return {};
  }
  void has_read(std::span<const std::byte> part) const override { copies_.release(part); }
  void drop_copies() override { copies_.drop(); }

  // Adds a tensor under the name that it has here.
  Result<void> add(TensorView tensor, std::string name, const VisionFamily& family);
  // The sum of the parts for two frames: of a GGUF file, where they are two tensors.
  void join_frames();
  // Early converters called the projection to the feed-forward's width "down".
  void name_projections(int32_t dim);
  // Behind all tensors.
  Result<void> fold(const VisionFamily& family);

  std::unique_ptr<formats::ModelFile> file_;
  std::vector<SafetensorsFile> shards_;
  formats::FileInfo info_;
  formats::MetaList metadata_;

 private:
  TensorView transposed(const TensorView& tensor);
  TensorView plus_one(const TensorView& tensor);
  TensorView sum_of_frames(const TensorView& tensor);
  TensorView widened(const TensorView& tensor);
  TensorView channels_first(const TensorView& tensor);
  Result<TensorView> paired(TensorView tensor);
  TensorView axes_first(const TensorView& tensor);
  TensorView made(const TensorView& like, Shape shape, std::vector<float> values);

  std::deque<std::string> names_;
  std::deque<std::vector<float>> made_;
  mutable formats::TensorCopies copies_;
  std::vector<TensorView> tensors_;
};

// Checkpoints keep tables so: [1, positions, D].
Shape without_outer_ones(Shape shape) {
  while (shape.n_dims > 2 && shape[0] == 1) {
    std::copy(shape.dims.begin() + 1, shape.dims.end(), shape.dims.begin());
    shape.dims.back() = 0;
    --shape.n_dims;
  }
  return shape;
}

TensorView TowerFile::made(const TensorView& like, Shape shape, std::vector<float> values) {
  const std::vector<float>& kept = made_.emplace_back(std::move(values));
  return {like.name, DType::kF32, shape, reinterpret_cast<const std::byte*>(kept.data()), kept.size() * sizeof(float)};
}

TensorView TowerFile::transposed(const TensorView& tensor) {
  std::vector<float> there(static_cast<size_t>(tensor.shape.n_elements()));
  decode_rows(tensor, there.data());
  const auto n_rows = static_cast<size_t>(tensor.shape[0]);
  const auto n_cols = static_cast<size_t>(tensor.shape[1]);
  std::vector<float> here(there.size());
  for (size_t i = 0; i < n_rows; ++i) {
    for (size_t j = 0; j < n_cols; ++j) here[j * n_rows + i] = there[i * n_cols + j];
  }
  return made(tensor, {2, {tensor.shape[1], tensor.shape[0]}}, std::move(here));
}

TensorView TowerFile::plus_one(const TensorView& tensor) {
  std::vector<float> gains(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), gains.data());
  for (float& gain : gains) gain += 1.0f;
  return made(tensor, tensor.shape, std::move(gains));
}

TensorView TowerFile::widened(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), values.data());
  return made(tensor, tensor.shape, std::move(values));
}

// Of [D * 3, 2, P, P], as a checkpoint's [D, 3, 2, P, P] is read: [D, 3 * P * P].
TensorView TowerFile::sum_of_frames(const TensorView& tensor) {
  std::vector<float> both(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), both.data());
  const auto n_each = static_cast<size_t>(tensor.shape[2] * tensor.shape[3]);
  std::vector<float> sums;
  for (size_t begin = 0; begin < both.size(); begin += 2 * n_each) {
    for (size_t i = 0; i < n_each; ++i) sums.push_back(both[begin + i] + both[begin + n_each + i]);
  }
  return made(tensor, {2, {tensor.shape[0] / 3, 3 * tensor.shape[2] * tensor.shape[3]}}, std::move(sums));
}

void TowerFile::join_frames() {
  constexpr std::string_view kSecond = "v.patch_embd.weight.1";
  const TensorView* first = find(kPatches);
  const TensorView* second = find(kSecond);
  if (first == nullptr || second == nullptr || first->shape.n_elements() != second->shape.n_elements()) return;
  TensorView sum = widened(*first);
  const TensorView other = widened(*second);
  std::vector<float>& values = made_[made_.size() - 2];
  const std::vector<float>& more = made_.back();
  for (size_t i = 0; i < values.size(); ++i) values[i] += more[i];
  static_cast<void>(other);
  for (TensorView& tensor : tensors_) {
    if (tensor.name == kPatches) tensor = sum;
  }
  std::erase_if(tensors_, [](const TensorView& tensor) { return tensor.name == kSecond; });
}

// [.., y * x * 3] to [.., 3 * y * x].
TensorView TowerFile::channels_first(const TensorView& tensor) {
  constexpr size_t kChannels = 3;
  std::vector<float> there(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), there.data());
  std::vector<float> here(there.size());
  const auto n_cols = static_cast<size_t>(tensor.shape[tensor.shape.n_dims - 1]);
  const size_t n_pixels = n_cols / kChannels;
  for (size_t row = 0; row < there.size(); row += n_cols) {
    for (size_t i = 0; i < n_pixels * kChannels; ++i) {
      here[row + i % kChannels * n_pixels + i / kChannels] = there[row + i];
    }
  }
  return made(tensor, tensor.shape, std::move(here));
}

// The rows of a head's two halves, by turns.
Result<TensorView> TowerFile::paired(TensorView tensor) {
  CANDOR_ASSIGN(const int32_t n_heads, formats::require_int(*this, "clip.vision.attention.head_count", 1, 1 << 20));
  const auto n_rows = static_cast<size_t>(tensor.shape.n_dims == 2 ? tensor.shape[0] : 0);
  const size_t n_half = n_rows / static_cast<size_t>(n_heads) / 2;
  if (n_half == 0 || n_half * 2 * static_cast<size_t>(n_heads) != n_rows) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor {} {} has no two halves of rows for each of {} heads: the file is damaged",
                            formats::in_quotes(tensor.name), to_string(tensor.shape), n_heads));
  }
  const size_t n_row_bytes = tensor.n_bytes / n_rows;
  const auto write = [from = tensor.data, n_rows, n_half, n_row_bytes](std::byte* to) -> Result<void> {
    for (size_t row = 0; row < n_rows; ++row, to += n_row_bytes) {
      const size_t in_head = row % (2 * n_half);
      const size_t there = row - in_head + in_head % 2 * n_half + in_head / 2;
      std::memcpy(to, from + there * n_row_bytes, n_row_bytes);
    }
    return {};
  };
  CANDOR_ASSIGN(tensor.data, copies_.add(tensor.n_bytes, tensor.name, {write, {tensor.bytes()}}));
  return tensor;
}

// [positions, axes, D] to [axes, positions, D].
TensorView TowerFile::axes_first(const TensorView& tensor) {
  std::vector<float> there(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), there.data());
  const auto n_positions = static_cast<size_t>(tensor.shape[0]);
  const auto n_axes = static_cast<size_t>(tensor.shape[1]);
  const auto dim = static_cast<size_t>(tensor.shape[2]);
  std::vector<float> here;
  here.reserve(there.size());
  for (size_t axis = 0; axis < n_axes; ++axis) {
    for (size_t i = 0; i < n_positions; ++i) {
      const auto row = there.begin() + static_cast<std::ptrdiff_t>((i * n_axes + axis) * dim);
      here.insert(here.end(), row, row + static_cast<std::ptrdiff_t>(dim));
    }
  }
  return made(tensor, {3, {tensor.shape[1], tensor.shape[0], tensor.shape[2]}}, std::move(here));
}

Result<void> TowerFile::fold(const VisionFamily& family) {
  Folds folds = family.folds;
  if (folds.quick_gelu) {
    CANDOR_ASSIGN(folds.quick_gelu, has_quick_gelu(*this));
  }
  return fold_tensors(folds, tensors_, copies_);
}

Result<void> TowerFile::add(TensorView tensor, std::string name, const VisionFamily& family) {
  if (!dtype_info(tensor.dtype).is_weight) {
    return fail(ErrorKind::kUnsupported, fmt::format("tensor {}: type {} is no weight's", formats::in_quotes(name),
                                                     dtype_info(tensor.dtype).name));
  }
  const bool is_of_folder = !file_;
  tensor.name = names_.emplace_back(std::move(name));
  const bool has_frames = is_of_folder && family.has_frames && tensor.name == kPatches;
  if (has_frames && tensor.shape.n_dims == 4 && tensor.shape[1] == 2 && tensor.shape[0] % 3 == 0) {
    tensor = sum_of_frames(tensor);
  }
  if (tensor.name.starts_with(kPatches) && tensor.shape.n_dims == 4) {
    tensor.shape = {2, {tensor.shape[0], tensor.shape[1] * tensor.shape[2] * tensor.shape[3]}};
  }
  tensor.shape = without_outer_ones(tensor.shape);
  if (tensor.name == family.transposed && tensor.shape.n_dims == 2) tensor = transposed(tensor);
  const bool is_by_pixel = tensor.name.starts_with(kPixelNorm) || (tensor.name == kPatches && tensor.shape.n_dims == 2);
  if (is_of_folder && family.has_channels_last && is_by_pixel && tensor.shape.n_dims >= 1) {
    tensor = channels_first(tensor);
  }
  if (is_of_folder && family.has_positions_first && tensor.name == kPositionTable && tensor.shape.n_dims == 3) {
    tensor = axes_first(tensor);
  }
  if (is_of_folder && tensor.name == family.gains_less_one) tensor = plus_one(tensor);
  const bool is_rotated = tensor.name.ends_with(".attn_q.weight") || tensor.name.ends_with(".attn_k.weight");
  if (is_of_folder && family.has_halves && is_rotated) {
    CANDOR_ASSIGN(tensor, paired(tensor));
  }
  if (is_of_folder && std::ranges::find(kWidened, tensor.name) != std::end(kWidened)) tensor = widened(tensor);
  tensors_.push_back(tensor);
  return {};
}

void TowerFile::name_projections(int32_t dim) {
  const TensorView* down = find("v.blk.0.ffn_down.weight");
  if (down == nullptr || down->shape.n_dims != 2 || down->shape[0] == dim || down->shape[1] != dim) return;
  for (TensorView& tensor : tensors_) {
    const size_t at = tensor.name.find(".ffn_");
    if (at == std::string_view::npos || !tensor.name.starts_with("v.blk.")) continue;
    const bool is_down = tensor.name.substr(at).starts_with(".ffn_down.");
    const std::string_view rest = tensor.name.substr(tensor.name.find('.', at + 1));
    tensor.name =
        names_.emplace_back(fmt::format("{}.ffn_{}{}", tensor.name.substr(0, at), is_down ? "up" : "down", rest));
  }
}

// Of a GGUF file's tensor.
std::string name_here(std::string_view name, const VisionFamily& family) {
  for (const HubName& row : family.file_names) {
    if (const auto match = model::match_name(row.hub, name)) return model::fill_name(row.name, *match);
  }
  return std::string(name);
}

Result<std::vector<SafetensorsFile>> open_shards(const fs::path& folder) {
  std::vector<SafetensorsFile> shards;
  std::error_code ignored;
  std::set<std::string> names = {"model.safetensors"};
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(index, ignored)) {
    CANDOR_ASSIGN(const json listed, formats::read_json_file(index, kMaxConfigBytes));
    CANDOR_ASSIGN(names, model::shards_of(listed, "'model.safetensors.index.json'"));
  }
  for (const std::string& name : names) {
    CANDOR_ASSIGN(SafetensorsFile shard, SafetensorsFile::open(folder / name));
    shards.push_back(std::move(shard));
  }
  return shards;
}

// An empty object where the folder has none.
Result<json> read_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return json::object();
  CANDOR_ASSIGN(json read, formats::read_json_file(path, kMaxConfigBytes));
  if (read.is_object()) return read;
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: expected an object", formats::in_quotes(path.string())));
}

// What image processors are told: "preprocessor_config.json", or the part of "processor_config.json" that replaced it.
Result<json> read_processor(const fs::path& folder) {
  CANDOR_ASSIGN(json read, read_if_there(folder / "preprocessor_config.json"));
  CANDOR_ASSIGN(const json whole, read_if_there(folder / "processor_config.json"));
  if (const auto images = whole.find("image_processor"); images != whole.end() && images->is_object())
    read.update(*images);
  return read;
}

std::optional<std::string_view> behind_stem(std::string_view name, const VisionFamily& family) {
  for (const std::string_view stem : family.stems) {
    if (name.starts_with(stem)) return name.substr(stem.size());
  }
  return std::nullopt;
}

// Checkpoints count the mergers, files name the blocks that they stand behind.
std::string deep_block(const std::string& merger, const TowerFile& tower) {
  const auto flags = formats::meta_bools(tower, "clip.vision.is_deepstack_layers");
  size_t n_left = std::stoul(merger) + 1;
  if (flags && *flags != nullptr) {
    for (size_t block = 0; block < (*flags)->size(); ++block) {
      if ((**flags)[block] && --n_left == 0) return std::to_string(block);
    }
  }
  return "none." + merger;
}

// Features may be those of a block before the last.
Result<bool> is_unused_block(const TowerFile& tower, const model::Match& match) {
  if (match.block.empty()) return false;
  CANDOR_ASSIGN(const auto n_stored, formats::meta_int(tower, kStoredBlocks));
  if (!n_stored) return false;
  CANDOR_ASSIGN(const int32_t n_used, formats::require_int(tower, "clip.vision.block_count", 1, *n_stored));
  int64_t block = 0;
  const auto read = std::from_chars(match.block.data(), match.block.data() + match.block.size(), block);
  return read.ec == std::errc() && block >= n_used && block < *n_stored;
}

Result<void> add_from_hub(const TensorView& tensor, const VisionFamily& family, TowerFile& tower) {
  const std::optional<std::string_view> name = behind_stem(tensor.name, family);
  if (!name || std::ranges::find(family.ignored, *name) != family.ignored.end()) return {};
  for (const HubName& row : family.names) {
    auto match = model::match_name(row.hub, *name);
    if (!match) continue;
    CANDOR_ASSIGN(const bool is_left_out, is_unused_block(tower, *match));
    if (is_left_out) {
      tower.info_.left_out.emplace_back(tensor.name);
      return {};
    }
    if (row.hub.starts_with(kDeepMergers)) match->block = deep_block(match->block, tower);
    return tower.add(tensor, model::fill_name(row.name, *match), family);
  }
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("tensor {} {} has no place in a tower of {}: the model differs from what its architecture says",
                  formats::in_quotes(tensor.name), to_string(tensor.shape), family.projector));
}

}  // namespace

Result<std::unique_ptr<formats::ModelFile>> open_mmproj(const fs::path& path) {
  auto tower = std::make_unique<TowerFile>();
  CANDOR_ASSIGN(tower->file_, formats::open_model_file(path));
  tower->info_ = tower->file_->info();
  CANDOR_ASSIGN(const auto architecture, formats::meta_string(*tower->file_, "general.architecture"));
  if (architecture != "clip") {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: general.architecture is {}, expected \"clip\": name the model's mmproj file",
                            formats::in_quotes(path.string()), formats::in_quotes(architecture.value_or(""))));
  }
  CANDOR_ASSIGN(const VisionFamily* family, family_of(*tower->file_));
  for (const TensorView& tensor : tower->file_->tensors()) {
    const bool is_sound = tensor.name.starts_with("a.") || tensor.name.starts_with("mm.a.");
    if (is_sound || std::ranges::find(family->ignored, tensor.name) != family->ignored.end()) continue;
    CANDOR_TRY(tower->add(tensor, name_here(tensor.name, *family), *family));
  }
  CANDOR_ASSIGN(const int32_t dim, formats::require_int(*tower, "clip.vision.embedding_length", 1, 1 << 20));
  tower->name_projections(dim);
  if (family->has_frames) tower->join_frames();
  CANDOR_TRY(tower->fold(*family));
  return tower;
}

Result<std::unique_ptr<formats::ModelFile>> open_tower_of(const fs::path& folder) {
  CANDOR_ASSIGN(const json config, read_if_there(folder / "config.json"));
  const auto type_in = [](const json& object) {
    const json type = object.is_object() ? object.value("model_type", json()) : json();
    return type.is_string() ? type.get<std::string>() : std::string();
  };
  const json vision = config.value("vision_config", json());
  if (vision.is_null()) return nullptr;
  const VisionFamily* family = find_hub_family(type_in(config), type_in(vision));
  if (family == nullptr) return nullptr;
  CANDOR_ASSIGN(const json processor, read_processor(folder));
  auto tower = std::make_unique<TowerFile>();
  CANDOR_TRY(family->read_hub(config, processor, tower->metadata_));
  CANDOR_ASSIGN(tower->shards_, open_shards(folder));
  for (const SafetensorsFile& shard : tower->shards_) {
    tower->info_.paths.push_back(shard.path());
    for (const TensorView& tensor : shard.tensors()) CANDOR_TRY(add_from_hub(tensor, *family, *tower));
  }
  CANDOR_TRY(tower->fold(*family));
  return tower;
}

Result<std::optional<fs::path>> mmproj_beside(const fs::path& model) {
  std::error_code ignored;
  if (fs::is_directory(model, ignored)) return std::nullopt;
  std::vector<fs::path> found;
  const fs::path folder = model.has_parent_path() ? model.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const bool is_model = entry.path().filename() == model.filename();
    if (!is_model && formats::is_mmproj_name(entry.path())) found.push_back(entry.path());
  }
  if (found.size() <= 1) return found.empty() ? std::nullopt : std::optional(found.front());
  std::ranges::sort(found);
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{} and {} are beside the model: name the one to use by --mmproj",
                          formats::in_quotes(found[0].string()), formats::in_quotes(found[1].string())));
}

}  // namespace candor::vision
