#include "formats/safetensors/safetensors_writer.h"

#include <cstdint>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "formats/quote.h"

namespace candor::formats::safetensors {
namespace {

constexpr size_t kAlignment = 8;  // of the data, by spaces behind the header

const char* type_name(DType dtype) {
  CANDOR_CHECK(dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kI8);
  if (dtype == DType::kI8) return "U8";
  return dtype == DType::kF32 ? "F32" : dtype == DType::kF16 ? "F16" : "BF16";
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                    std::span<const NewTensor> tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::vector<size_t> tensor_bytes;
  uint64_t at = 0;
  for (const NewTensor& tensor : tensors) {
    if (header.contains(tensor.name)) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}: tensor {} would appear twice", in_quotes(path.string()), in_quotes(tensor.name)));
    }
    const size_t n_bytes =
        static_cast<size_t>(tensor.shape.n_elements()) * static_cast<size_t>(dtype_info(tensor.dtype).block_bytes);
    std::vector<int64_t> dims(tensor.shape.dims.begin(), tensor.shape.dims.begin() + tensor.shape.n_dims);
    header[tensor.name] = {
        {"dtype", type_name(tensor.dtype)}, {"shape", std::move(dims)}, {"data_offsets", {at, at + n_bytes}}};
    at += n_bytes;
    tensor_bytes.push_back(n_bytes);
  }
  std::string text = header.dump();
  text.resize(round_up<size_t>(text.size(), kAlignment), ' ');
  const uint64_t length = text.size();
  CANDOR_ASSIGN(NewFile file, NewFile::create(path));
  CANDOR_TRY(file.put(std::as_bytes(std::span(&length, 1))));
  CANDOR_TRY(file.put(std::as_bytes(std::span(text))));
  return SafetensorsWriter(std::move(file), std::move(tensor_bytes));
}

Result<void> SafetensorsWriter::write_tensor(std::span<const std::byte> bytes) {
  CANDOR_CHECK(file_.is_open() && n_written_ < tensor_bytes_.size());
  CANDOR_CHECK(bytes.size() == tensor_bytes_[n_written_]);
  ++n_written_;
  return file_.put(bytes);
}

Result<void> SafetensorsWriter::finish() {
  CANDOR_CHECK(file_.is_open() && n_written_ == tensor_bytes_.size());
  return file_.finish();
}

}  // namespace candor::formats::safetensors
