#include "model/adapter/adapter_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/hash.h"
#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/adapter/gguf_adapter.h"
#include "model/adapter/peft_adapter.h"
#include "model/adapter/task_adapter.h"
#include "model/families/families.h"
#include "model/hub/hub_choice.h"
#include "model/hub/hub_words.h"

namespace candor::model {
namespace {

namespace fs = std::filesystem;

// The form of the base model's own checkpoint, or nullptr: it is a GGUF file.
Result<const HubForm*> form_of(const formats::ModelFile& base) {
  if (base.info().format != "safetensors" || base.info().paths.empty()) return nullptr;
  const fs::path path = base.info().paths.front().parent_path() / "config.json";
  CANDOR_ASSIGN(const nlohmann::json config, formats::read_json_file(path, kMaxConfigBytes));
  CANDOR_ASSIGN(const FamilyForm chosen, choose_form(config, formats::in_quotes(path.string())));
  return chosen.form;
}

bool is_finite(const TensorView& tensor) {
  std::vector<float> row(static_cast<size_t>(tensor.shape.row_elements()));
  for (int64_t i = 0; i < (tensor.shape.n_dims == 0 ? 0 : tensor.shape.n_rows()); ++i) {
    decode_row(tensor, i, row.data());
    if (!std::ranges::all_of(row, [](float x) { return std::isfinite(x); })) return false;
  }
  return true;
}

Result<void> check_values(const AdapterPart& part, const fs::path& path) {
  const auto is_number = [](float x) { return std::isfinite(x); };
  if (is_finite(part.down) && is_finite(part.up) && std::isfinite(part.scale) &&
      std::ranges::all_of(part.magnitudes, is_number)) {
    return {};
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("adapter {}: {} holds NaN or infinity; expected finite numbers",
                          formats::in_quotes(path.string()), formats::in_quotes(part.name)),
              "adapters");
}

uint64_t hash_of(const TensorView& tensor, uint64_t seed) {
  for (int32_t i = 0; i < tensor.shape.n_dims; ++i) seed = hash_mix(seed, static_cast<uint64_t>(tensor.shape[i]));
  return hash_bytes(tensor.bytes(), hash_mix(seed, static_cast<uint64_t>(tensor.dtype)));
}

}  // namespace

Result<std::unique_ptr<AdapterFile>> AdapterFile::open(const fs::path& path, const ArchSpec& spec,
                                                       const formats::ModelFile& base, std::string_view task) {
  const Family* family = find_family(spec.family);
  if (family == nullptr) return fail(ErrorKind::kUnsupported, "the model's family has no adapters", "adapters");
  std::error_code ignored;
  const bool is_file_of_folder = path.filename() == "adapter_config.json" || path.extension() == ".safetensors";
  const fs::path folder = is_file_of_folder ? path.parent_path() : path;
  const auto read = [&]() -> Result<std::unique_ptr<AdapterFile>> {
    if (!fs::exists(path, ignored)) {
      return fail(ErrorKind::kNotFound,
                  fmt::format("adapter {}: no such file or folder", formats::in_quotes(path.string())), "adapters");
    }
    if (!fs::is_directory(folder, ignored)) return GgufAdapterReader(path, spec, *family).read();
    const bool is_peft = fs::exists(folder / "adapter_config.json", ignored);
    if (!is_peft && !task.empty() && has_tasks(folder)) return TaskAdapterReader(folder, task, spec, *family).read();
    if (!is_peft) {
      return fail(
          ErrorKind::kInvalidInput,
          fmt::format("adapter {}: the folder has no adapter_config.json: expected a folder as PEFT saves it, or a "
                      "GGUF file",
                      formats::in_quotes(folder.string())),
          "adapters");
    }
    CANDOR_ASSIGN(const HubForm* form, form_of(base));
    return PeftReader(folder, spec, *family, form).read();
  };
  auto file = read();
  if (!file) return fail(std::move(file).error(), "adapters");
  for (const AdapterPart& part : (*file)->parts()) CANDOR_TRY(check_values(part, path));
  CANDOR_TRY((*file)->check_intact());
  if ((*file)->parts().empty()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("adapter {}: changes nothing: no matrix is in it", formats::in_quotes(path.string())),
                "adapters");
  }
  return file;
}

uint64_t AdapterFile::hash() const {
  uint64_t hash = 0;
  for (const AdapterPart& part : parts_) {
    for (const auto number : {static_cast<uint64_t>(part.role), static_cast<uint64_t>(part.layer),
                              static_cast<uint64_t>(part.expert), uint64_t{std::bit_cast<uint32_t>(part.scale)}}) {
      hash = hash_mix(hash, number);
    }
    hash = hash_of(part.up, hash_of(part.down, hash));
    hash = hash_bytes(std::as_bytes(std::span(part.magnitudes)), hash);
  }
  return hash;
}

Result<void> AdapterFile::check_intact() const {
  for (const auto& shard : shards_) CANDOR_TRY(shard.check_intact());
  return gguf_ == nullptr ? Result<void>{} : gguf_->check_intact();
}

bool is_adapter(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return fs::exists(path / "adapter_config.json", ignored);
  if (path.extension() != ".gguf") return false;
  const auto file = formats::open_model_file(path);
  if (!file) return false;
  const auto type = formats::meta_string(**file, "general.type");
  return type && *type && **type == "adapter";
}

}  // namespace candor::model
