// Any bytes as a GGUF file: parsed twice with the same verdict; what loads keeps the promises of its interface.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/gguf/gguf_reader.h"
#include "fuzz/fuzz_budget.h"
#include "tensor/tensor_view.h"

namespace {

using candor::TensorView;
using candor::formats::gguf::GgufFile;

void check_tensor(const GgufFile& file, const TensorView& view, std::span<const std::byte> bytes) {
  CANDOR_CHECK(file.find(view.name) == &view);
  CANDOR_CHECK(view.n_bytes <= bytes.size());
  CANDOR_CHECK(view.data >= bytes.data() && view.data <= bytes.data() + (bytes.size() - view.n_bytes));
  CANDOR_CHECK(static_cast<size_t>(view.shape.n_rows()) * view.row_bytes() == view.n_bytes);
  if (!candor::dtype_info(view.dtype).is_weight) return;
  std::vector<float> row(static_cast<size_t>(view.shape.row_elements()));
  candor::decode_row(view, 0, row.data());
  candor::decode_row(view, view.shape.n_rows() - 1, row.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto file = GgufFile::parse(bytes, "fuzz.gguf");
  const auto again = GgufFile::parse(bytes, "fuzz.gguf");
  CANDOR_CHECK(file.has_value() == again.has_value());
  if (!file) {
    CANDOR_CHECK(file.error().message == again.error().message);
    CANDOR_CHECK(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const auto& entry : (*file)->metadata()) CANDOR_CHECK((*file)->meta(entry.key) == &entry.value);
  for (const TensorView& view : (*file)->tensors()) check_tensor(**file, view, bytes);
  return 0;
}
