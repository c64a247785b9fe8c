#pragma once
// A file of torch.save that holds a state_dict alone (PyTorch 1.6 and newer: a ZIP archive of a pickle and the tensors'
// bytes), as the small heads of some folders are. The pickle is read as data and runs nothing (tensor_pickle.h). Maps
// the file; tensors are views into it. Immutable; any thread.

#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "platform/mapped_file.h"
#include "tensor/tensor_view.h"

namespace candor::formats::torch {

class TorchFile {
 public:
  static Result<TorchFile> open(const std::filesystem::path& path);

  // In the file's order. Names belong to this object.
  std::span<const TensorView> tensors() const { return tensors_; }
  size_t n_bytes() const { return map_.bytes().size(); }
  Result<void> check_intact() const { return map_.check_intact(); }

 private:
  explicit TorchFile(platform::MappedFile map) : map_(std::move(map)) {}

  platform::MappedFile map_;
  std::vector<TensorView> tensors_;
};

// Of the archive's bytes; names and data are borrowed from them. file_name: of errors, in quotes. Refused: what
// zip_directory.h and tensor_pickle.h refuse, big-endian numbers, and tensors that pass the end of their storage.
Result<std::vector<TensorView>> read_archive(std::span<const std::byte> archive, std::string_view file_name);

}  // namespace candor::formats::torch
