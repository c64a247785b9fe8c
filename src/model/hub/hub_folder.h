#pragma once
// Reads a Hugging Face checkpoint as a ModelFile with GGUF's keys and tensor names, so that no other code knows where a
// model came from. A checkpoint is a folder of config.json, safetensors (one file, or shards listed in
// model.safetensors.index.json), tokenizer.json and the like.
//
// Weights that GGUF keeps in another order are copied, and quantised codes are joined with scales that lie in another
// tensor; all other tensors are views of the mapped files. Pickles are refused by name, as are shards outside the
// folder.

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

// Opens a GGUF file, or a Hugging Face checkpoint by its folder (or by a safetensors or JSON file in it).
Result<std::unique_ptr<formats::ModelFile>> open_model(const std::filesystem::path& path);

}  // namespace candor::model
