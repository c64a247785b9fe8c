#include "model/hub/hub_shards.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_index.h"
#include "model/hub/hub_words.h"
#include "model/hub/other_folders.h"

namespace candor::model {
namespace {

namespace fs = std::filesystem;
using formats::safetensors::SafetensorsFile;

constexpr const char* kShardIndex = "model.safetensors.index.json";

Result<void> open_shard(const fs::path& path, formats::FileInfo& info, std::vector<SafetensorsFile>& shards) {
  CANDOR_ASSIGN(SafetensorsFile shard, SafetensorsFile::open(path));
  info.paths.push_back(path);
  info.n_bytes += shard.n_bytes();
  shards.push_back(std::move(shard));
  return {};
}

Result<void> open_indexed(const fs::path& folder, formats::FileInfo& info, std::vector<SafetensorsFile>& shards) {
  const std::string index_name = formats::in_quotes((folder / kShardIndex).string());
  CANDOR_ASSIGN(const nlohmann::json index, formats::read_json_file(folder / kShardIndex, kMaxConfigBytes));
  CANDOR_ASSIGN(const std::set<std::string> names, shards_of(index, index_name));
  for (const std::string& name : names) CANDOR_TRY(open_shard(folder / name, info, shards));
  std::set<std::string_view> present;
  for (const SafetensorsFile& shard : shards) {
    for (const TensorView& tensor : shard.tensors()) present.insert(tensor.name);
  }
  return check_index(index, index_name, present);
}

}  // namespace

Result<void> open_shards(const fs::path& folder, formats::FileInfo& info, std::vector<SafetensorsFile>& shards) {
  std::error_code ignored;
  if (fs::exists(folder / kShardIndex, ignored)) return open_indexed(folder, info, shards);
  if (fs::exists(folder / "model.safetensors", ignored)) {
    return open_shard(folder / "model.safetensors", info, shards);
  }
  CANDOR_TRY(refuse_pickles(folder));
  return without_weights(folder);
}

}  // namespace candor::model
