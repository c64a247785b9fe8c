#pragma once
// A model as it is published on the hub, a folder of config.json, safetensors (one file, or shards under
// model.safetensors.index.json), tokenizer.json and their kin, as a ModelFile with GGUF's keys and names, so that
// nothing above knows where a model came from. Weights that a family keeps in another order are copied, and codes that
// have their scales in another tensor are joined with them; all others are views of the mapped files. Pickles are
// refused by name, as are shards outside the folder.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta_list.h"
#include "formats/model_file.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/tensor_copies.h"
#include "tensor/tensor_view.h"

namespace candor::model {

class HubFolder final : public formats::ModelFile {
 public:
  static Result<std::unique_ptr<HubFolder>> open(const std::filesystem::path& folder);

  const formats::FileInfo& info() const override { return info_; }
  std::span<const formats::MetaEntry> metadata() const override { return metadata_.entries(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override { return metadata_.find(key); }
  const TensorView* find(std::string_view name) const override;
  Result<void> check_intact() const override;
  void will_read(std::span<const std::byte> part) const override;
  void has_read(std::span<const std::byte> part) const override;
  Result<void> make_copy(std::span<const std::byte> part) const override;
  uint64_t copy_bytes() const override { return copies_.n_bytes(); }
  void drop_copies() override { copies_.drop(); }

 private:
  friend class HubReader;
  HubFolder() = default;

  formats::FileInfo info_;
  formats::MetaList metadata_;
  std::vector<formats::safetensors::SafetensorsFile> shards_;
  std::deque<std::string> names_;
  mutable formats::TensorCopies copies_;
  std::vector<TensorView> tensors_;
  std::vector<uint32_t> order_;
};

// A GGUF file, or a folder of the hub (or a safetensors or JSON file in one).
Result<std::unique_ptr<formats::ModelFile>> open_model(const std::filesystem::path& path);

}  // namespace candor::model
