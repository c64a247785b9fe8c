#pragma once
// Reads a GGUF model as a ModelFile: one file, or all parts of a split one. Maps the files and keeps them mapped;
// tensors and strings are views into them. The metadata of a split model is its first part's; its tensors are those of
// all parts, in order. Tensors of types without a decoder are listed too; binding one to a role (model/weights.h)
// refuses it.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/gguf/gguf_part.h"
#include "formats/model_file.h"
#include "platform/mapped_file.h"
#include "tensor/tensor_view.h"

namespace candor::formats::gguf {

class GgufFile final : public ModelFile {
 public:
  // path: the file, or any part of a split model ("name-00001-of-00003.gguf"), whose other parts lie beside it.
  static Result<std::unique_ptr<GgufFile>> open(const std::filesystem::path& path);

  // A single file's bytes, which must outlive the result. name: what errors call it.
  static Result<std::unique_ptr<GgufFile>> parse(std::span<const std::byte> bytes, std::string_view name);

  const FileInfo& info() const override { return info_; }
  std::span<const MetaEntry> metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const MetaValue* meta(std::string_view key) const override;
  const TensorView* find(std::string_view name) const override;
  Result<void> check_intact() const override;
  void will_read(std::span<const std::byte> part) const override;
  void has_read(std::span<const std::byte> part) const override;

 private:
  struct OpenPart {
    platform::MappedFile map;
    GgufPart header;
  };

  GgufFile() = default;
  static Result<OpenPart> open_part(const std::filesystem::path& path);
  static Result<std::unique_ptr<GgufFile>> open_split(const std::filesystem::path& path, int64_t n_parts);
  Result<void> check_split_total(const std::filesystem::path& path) const;
  // Takes a part's tensors, and its metadata when it is the first.
  void add_part(GgufPart part, const std::filesystem::path& path, size_t n_bytes);
  Result<void> index_names(std::string_view file);

  // Constant after construction.
  FileInfo info_;
  std::vector<platform::MappedFile> maps_;
  std::vector<MetaEntry> metadata_;
  std::vector<TensorView> tensors_;
  std::vector<uint32_t> metadata_order_;
  std::vector<uint32_t> tensor_order_;
};

}  // namespace candor::formats::gguf
