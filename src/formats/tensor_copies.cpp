#include "formats/tensor_copies.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "formats/quote.h"

namespace candor::formats {

CopySource behind(const CopySource& made, size_t n_bytes,
                  std::function<void(const std::byte* from, std::byte* to)> write) {
  return {[make = made.write, n_bytes, write = std::move(write)](std::byte* to) -> Result<void> {
            CANDOR_ASSIGN(auto buffer, platform::HugeBuffer::allocate(n_bytes, "a tensor's copy"));
            CANDOR_TRY(make(buffer.data()));
            write(buffer.data(), to);
            return {};
          },
          made.bytes};
}

Result<TensorCopies::Copy*> TensorCopies::add_copy(size_t n_bytes, std::string_view tensor) {
  CANDOR_ASSIGN(auto buffer, platform::HugeBuffer::allocate(std::max<size_t>(n_bytes, 1),
                                                            fmt::format("tensor {}", in_quotes(tensor))));
  const std::byte* begin = buffer.data();
  return &copies_.emplace(begin, Copy{std::move(buffer), {}}).first->second;
}

Result<std::byte*> TensorCopies::add(size_t n_bytes, std::string_view tensor) {
  CANDOR_ASSIGN(Copy * copy, add_copy(n_bytes, tensor));
  standing_bytes_ += n_bytes;
  return copy->buffer.data();
}

Result<const std::byte*> TensorCopies::add(size_t n_bytes, std::string_view tensor, CopySource source) {
  CANDOR_ASSIGN(Copy * copy, add_copy(n_bytes, tensor));
  copy->source = std::move(source);
  largest_made_ = std::max<uint64_t>(largest_made_, n_bytes);
  return copy->buffer.data();
}

TensorCopies::Copy* TensorCopies::find(std::span<const std::byte> part) {
  auto at = copies_.upper_bound(part.data());
  if (at == copies_.begin()) return nullptr;
  Copy& copy = (--at)->second;
  const std::byte* end = copy.buffer.data() + copy.buffer.size();
  return std::less<>()(part.data(), end) && copy.source.write ? &copy : nullptr;
}

const CopySource* TensorCopies::source_of(std::span<const std::byte> part) const {
  const Copy* copy = const_cast<TensorCopies*>(this)->find(part);
  return copy == nullptr ? nullptr : &copy->source;
}

std::vector<std::span<const std::byte>> TensorCopies::read_for(std::span<const std::byte> part) const {
  const CopySource* source = source_of(part);
  return source == nullptr ? std::vector{part} : source->bytes;
}

Result<bool> TensorCopies::make(std::span<const std::byte> part) {
  Copy* copy = find(part);
  if (copy == nullptr) return false;
  const auto begin = static_cast<size_t>(part.data() - copy->buffer.data());
  if (copy->is_made && begin >= copy->released) return false;
  CANDOR_TRY(copy->source.write(copy->buffer.data()));
  copy->is_made = true;
  copy->released = 0;
  return true;
}

void TensorCopies::release(std::span<const std::byte> part) {
  Copy* copy = find(part);
  if (copy == nullptr || !copy->is_made) return;
  const auto end = static_cast<size_t>(part.data() + part.size() - copy->buffer.data());
  if (end <= copy->released) return;
  copy->buffer.release({copy->released, end});
  copy->released = end;
}

void TensorCopies::drop() {
  copies_.clear();
}

}  // namespace candor::formats
