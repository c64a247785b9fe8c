#pragma once
// One GGUF file's header, parsed and checked: what a split model has several of. Everything a reader of tensors relies
// on holds for a GgufPart: names and keys unique and not empty, dimensions positive, sizes without overflow, data
// inside the file, aligned, and without overlap. Strings and data stay in the caller's bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/gguf/byte_source.h"
#include "formats/model_file.h"
#include "tensor/tensor_view.h"

namespace candor::formats::gguf {

struct GgufPart {
  uint32_t version = 0;
  uint32_t alignment = 0;
  uint64_t data_offset = 0;  // of the tensor data; the header's end, rounded up to the alignment
  std::vector<MetaEntry> metadata;
  std::vector<TensorView> tensors;
};

// file: the name that errors give.
Result<GgufPart> parse_part(std::span<const std::byte> bytes, std::string_view file);

// Steps of parse_part, each leaving the source behind what it read.

struct Metadata {
  std::vector<MetaEntry> entries;
  uint32_t alignment = 0;
};
Result<Metadata> parse_metadata(ByteSource& source, uint64_t n_entries);

Result<std::vector<TensorView>> parse_directory(ByteSource& source, uint64_t n_tensors, uint32_t alignment);

}  // namespace candor::formats::gguf
