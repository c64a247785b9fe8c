#include "model/fingerprint.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "model/arch_text.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

constexpr size_t kWholeBytes = size_t{1} << 20;
constexpr size_t kWindowBytes = size_t{1} << 12;
constexpr size_t kWindows = 64;

uint64_t hash_text(std::string_view text, uint64_t seed) {
  return hash_bytes(std::as_bytes(std::span(text.data(), text.size())), seed);
}

uint64_t hash_content(const TensorView& tensor, uint64_t seed) {
  const std::span bytes(tensor.data, tensor.n_bytes);
  if (bytes.size() <= kWholeBytes) return hash_bytes(bytes, seed);
  const size_t last = bytes.size() - kWindowBytes;
  for (size_t i = 0; i < kWindows; ++i) {
    // last / (kWindows - 1) first: the product stays below the tensor's size.
    const size_t begin = i + 1 == kWindows ? last : last / (kWindows - 1) * i;
    seed = hash_bytes(bytes.subspan(begin, kWindowBytes), seed);
  }
  return seed;
}

}  // namespace

uint64_t fingerprint(const ArchSpec& spec, const formats::ModelFile& file) {
  uint64_t hash = hash_text(to_text(spec), 0);
  for (const TensorView& tensor : file.tensors()) {
    hash = hash_text(tensor.name, hash);
    hash = hash_text(dtype_info(tensor.dtype).name, hash);
    hash = hash_text(to_string(tensor.shape), hash);
    hash = hash_content(tensor, hash);
  }
  return hash;
}

}  // namespace candor::model
