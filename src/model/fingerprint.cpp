#include "model/fingerprint.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
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

uint64_t hash_content(std::span<const std::byte> bytes) {
  if (bytes.size() <= kWholeBytes) return hash_bytes(bytes, 0);
  const size_t last = bytes.size() - kWindowBytes;
  uint64_t hash = 0;
  for (size_t i = 0; i < kWindows; ++i) {
    // last / (kWindows - 1) first: the product stays below the tensor's size.
    const size_t begin = i + 1 == kWindows ? last : last / (kWindows - 1) * i;
    hash = hash_bytes(bytes.subspan(begin, kWindowBytes), hash);
  }
  return hash;
}

}  // namespace

Contents::Contents(const formats::ModelFile& file)
    : file_(file), by_address_(file.tensors().size()), hashes_(file.tensors().size()) {
  std::iota(by_address_.begin(), by_address_.end(), size_t{0});
  std::ranges::sort(by_address_, std::less<>(), [&](size_t i) { return file.tensors()[i].data; });
}

void Contents::note(std::span<const std::byte> part) {
  const auto behind = std::ranges::upper_bound(by_address_, part.data(), std::less<>(),
                                               [&](size_t i) { return file_.tensors()[i].data; });
  if (behind == by_address_.begin()) return;
  const size_t i = *std::prev(behind);
  const std::span<const std::byte> bytes = file_.tensors()[i].bytes();
  const bool is_inside = !std::less<>()(bytes.data() + bytes.size(), part.data() + part.size());
  if (is_inside && !hashes_[i]) hashes_[i] = hash_content(bytes);
}

Result<uint64_t> Contents::fingerprint(const ArchSpec& spec) {
  uint64_t hash = hash_text(to_text(spec), 0);
  for (size_t i = 0; i < hashes_.size(); ++i) {
    const TensorView& tensor = file_.tensors()[i];
    if (!hashes_[i]) {
      CANDOR_TRY(file_.make_copy(tensor.bytes()));
      hashes_[i] = hash_content(tensor.bytes());
      file_.has_read(tensor.bytes());
    }
    hash = hash_text(tensor.name, hash);
    hash = hash_text(dtype_info(tensor.dtype).name, hash);
    hash = hash_text(to_string(tensor.shape), hash);
    hash = hash_bytes(std::as_bytes(std::span(&*hashes_[i], 1)), hash);
  }
  return hash;
}

}  // namespace candor::model
