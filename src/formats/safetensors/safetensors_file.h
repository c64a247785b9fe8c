#pragma once
// One .safetensors file: a 64-bit little-endian header length, a JSON header {name: {dtype, shape, data_offsets}}, and
// the tensors' bytes behind it (format of the safetensors library, 0.4). Maps the file; tensor data are views into it.
// Refused: a header longer than the file or than 64 MiB, more than 2^18 tensors, ranges that overlap, leave gaps or
// pass the end, a size that differs from shape times element size, unknown element types, duplicate names, more than
// four dimensions. Immutable; any thread.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "platform/mapped_file.h"
#include "tensor/tensor_view.h"

namespace candor::formats::safetensors {

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path);

  // In the order of their data. Names belong to this object.
  std::span<const TensorView> tensors() const { return tensors_; }
  const std::filesystem::path& path() const { return map_.path(); }
  size_t n_bytes() const { return map_.bytes().size(); }
  Result<void> check_intact() const { return map_.check_intact(); }
  void will_read(std::span<const std::byte> part) const { map_.will_read(part); }
  void has_read(std::span<const std::byte> part) const { map_.has_read(part); }

 private:
  explicit SafetensorsFile(platform::MappedFile map) : map_(std::move(map)) {}

  platform::MappedFile map_;
  std::vector<std::string> names_;
  std::vector<TensorView> tensors_;
};

// The directory of a header, `data` being what follows it. names: filled, and borrowed by the result.
Result<std::vector<TensorView>> read_header(std::string_view header, std::span<const std::byte> data,
                                            std::string_view file_name, std::vector<std::string>& names);

}  // namespace candor::formats::safetensors
