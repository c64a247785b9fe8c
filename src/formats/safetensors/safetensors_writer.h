#pragma once
// Writes one .safetensors file: the header for tensors that are listed first, then their bytes one after another, so
// that a model is never in memory as a whole. See formats/new_file.h for how the file appears. One thread.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/new_file.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::formats::safetensors {

struct NewTensor {
  std::string name;
  DType dtype = DType::kF32;  // F32, F16, BF16, or I8 for bytes
  Shape shape;
};

class SafetensorsWriter {
 public:
  // Refuses names that stand twice.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path, std::span<const NewTensor> tensors);

  // The next tensor. REQUIRES: as many bytes as its shape and type say.
  Result<void> write_tensor(std::span<const std::byte> bytes);
  // REQUIRES: every tensor is written.
  Result<void> finish();

 private:
  SafetensorsWriter(NewFile file, std::vector<size_t> tensor_bytes)
      : file_(std::move(file)), tensor_bytes_(std::move(tensor_bytes)) {}

  NewFile file_;
  std::vector<size_t> tensor_bytes_;
  size_t n_written_ = 0;
};

}  // namespace candor::formats::safetensors
