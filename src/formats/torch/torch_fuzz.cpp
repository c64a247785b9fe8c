// Any bytes as a file of torch.save, and as the pickle in one: read twice with the same verdict; tensors stay inside
// the bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "formats/torch/tensor_pickle.h"
#include "formats/torch/torch_file.h"
#include "fuzz/fuzz_budget.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto views = candor::formats::torch::read_archive(bytes, "'fuzz'");
  const auto again = candor::formats::torch::read_archive(bytes, "'fuzz'");
  CANDOR_CHECK(views.has_value() == again.has_value());
  if (views) {
    for (const candor::TensorView& view : *views) {
      CANDOR_CHECK(view.n_bytes == 0 ||
                   (view.data >= bytes.data() && view.data + view.n_bytes <= bytes.data() + bytes.size()));
    }
  } else {
    CANDOR_CHECK(views.error().message == again.error().message);
    CANDOR_CHECK(views.error().message.find('\n') == std::string::npos);
  }
  const std::string_view pickle(reinterpret_cast<const char*>(data), size);
  const auto tensors = candor::formats::torch::read_pickle(pickle, "'fuzz'");
  CANDOR_CHECK(tensors || tensors.error().message.find('\n') == std::string::npos);
  return 0;
}
