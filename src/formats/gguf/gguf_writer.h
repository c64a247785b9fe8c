#pragma once
// Writes GGUF v3. GgufHeader collects metadata and the tensors to come and lays them out; GgufWriter streams the
// tensors' bytes behind it, one after the other, so that a model is never in memory as a whole:
//   GgufHeader header;
//   CANDOR_TRY(header.add_meta("general.architecture", std::string("llama")));
//   CANDOR_TRY(header.add_tensor("token_embd.weight", DType::kQ8_0, shape));
//   CANDOR_ASSIGN(GgufWriter writer, GgufWriter::create(path, header));
//   CANDOR_TRY(writer.write_tensor(bytes));
//   CANDOR_TRY(writer.finish());
// The file appears under its name when finish() is done (formats/new_file.h). One thread.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "formats/gguf/gguf_format.h"
#include "formats/new_file.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::formats::gguf {

// The C++ type decides the type on disk, width included.
using GgufScalar = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool, std::string,
                                uint64_t, int64_t, double>;
using GgufArray =
    std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                 std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>, std::vector<bool>,
                 std::vector<std::string>, std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>>;
using GgufValue = std::variant<GgufScalar, GgufArray>;

class GgufHeader {
 public:
  using Names = std::set<std::string, std::less<>>;

  // general.alignment is written when it is not the default. REQUIRES: a power of two, at least kMinAlignment.
  explicit GgufHeader(uint32_t alignment = kDefaultAlignment);

  // Refuses what the reader would refuse: empty, long, repeated or non-UTF-8 keys and names, and bad shapes.
  Result<void> add_meta(std::string_view key, const GgufValue& value);
  Result<void> add_tensor(std::string_view name, DType dtype, const Shape& shape);

  uint32_t alignment() const { return alignment_; }
  // Bytes of each tensor, in the order of add_tensor().
  std::span<const size_t> tensor_bytes() const { return tensor_bytes_; }
  // Everything before the data, padded to the alignment.
  std::vector<std::byte> bytes() const;

 private:
  uint32_t alignment_;
  uint64_t n_meta_ = 0;
  uint64_t data_end_ = 0;  // offset of the next tensor
  std::string metadata_;   // as they stand on disk
  std::string directory_;
  Names keys_;
  Names names_;
  std::vector<size_t> tensor_bytes_;
};

class GgufWriter {
 public:
  static Result<GgufWriter> create(const std::filesystem::path& path, const GgufHeader& header);

  // The next tensor in the header's order. bytes: as many as the header says.
  Result<void> write_tensor(std::span<const std::byte> bytes);
  // REQUIRES: every tensor is written. Afterwards the file stands under its name.
  Result<void> finish();

 private:
  GgufWriter(NewFile file, const GgufHeader& header)
      : file_(std::move(file)),
        tensor_bytes_(header.tensor_bytes().begin(), header.tensor_bytes().end()),
        alignment_(header.alignment()) {}

  NewFile file_;
  std::vector<size_t> tensor_bytes_;
  size_t n_written_ = 0;  // tensors
  uint32_t alignment_ = kDefaultAlignment;
};

}  // namespace candor::formats::gguf
