#include "model/hub/hub_folder.h"

#include "base/error.h"
#include "formats/name_order.h"

namespace candor::model {

using formats::safetensors::SafetensorsFile;

const TensorView* HubFolder::find(std::string_view name) const {
  return formats::find_by_name(std::span<const TensorView>(tensors_), order_, name,
                               [](const TensorView& tensor) { return tensor.name; });
}

void HubFolder::will_read(std::span<const std::byte> part) const {
  for (const std::span<const std::byte> bytes : copies_.read_for(part)) {
    for (const SafetensorsFile& shard : shards_) shard.will_read(bytes);
  }
}

void HubFolder::has_read(std::span<const std::byte> part) const {
  copies_.release(part);
  for (const SafetensorsFile& shard : shards_) shard.has_read(part);
}

Result<void> HubFolder::make_copy(std::span<const std::byte> part) const {
  CANDOR_ASSIGN(const bool is_new, copies_.make(part));
  if (!is_new) return {};
  for (const std::span<const std::byte> bytes : copies_.read_for(part)) {
    for (const SafetensorsFile& shard : shards_) shard.has_read(bytes);
  }
  return {};
}

Result<void> HubFolder::check_intact() const {
  for (const SafetensorsFile& shard : shards_) CANDOR_TRY(shard.check_intact());
  return {};
}

}  // namespace candor::model
