#include "platform/huge_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/checked.h"

namespace candor::platform {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSmallPage = size_t{4} << 10;

std::byte* map_pages(size_t n_bytes) {
  void* address = mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

// Maps one huge page more than asked and gives back what lies outside the aligned range.
std::byte* map_aligned(size_t n_bytes) {
  std::byte* start = map_pages(n_bytes + kHugePage);
  if (start == nullptr) return nullptr;
  const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (skip != 0) munmap(start, skip);
  munmap(start + skip + n_bytes, kHugePage - skip);
#if defined(MADV_HUGEPAGE)
  madvise(start + skip, n_bytes, MADV_HUGEPAGE);
#endif
  return start + skip;
}

}  // namespace

Result<HugeBuffer> HugeBuffer::allocate(size_t n_bytes, std::string_view what) {
  HugeBuffer buffer;
  if (n_bytes == 0) return buffer;
  std::byte* data = nullptr;
  size_t mapped = 0;
  if (n_bytes <= std::numeric_limits<size_t>::max() / 4) {
    const bool large = n_bytes >= kHugePage;
    mapped = round_up(n_bytes, large ? kHugePage : kSmallPage);
    data = large ? map_aligned(mapped) : map_pages(mapped);
  }
  if (data == nullptr) {
    return fail(ErrorKind::kOutOfMemory, std::string(what) + ": the system refuses " + std::to_string(n_bytes >> 20) +
                                             " MiB of memory; free memory or ask for less");
  }
  buffer.data_ = data;
  buffer.n_bytes_ = n_bytes;
  buffer.mapped_bytes_ = mapped;
  return buffer;
}

void HugeBuffer::release(Range range) noexcept {
  const auto down = [](size_t at) { return at / kSmallPage * kSmallPage; };
  const size_t begin = down(range.begin);
  const size_t end = range.end >= n_bytes_ ? mapped_bytes_ : down(range.end);
  if (data_ != nullptr && begin < end) madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

HugeBuffer::~HugeBuffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

HugeBuffer::HugeBuffer(HugeBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      n_bytes_(std::exchange(other.n_bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

HugeBuffer& HugeBuffer::operator=(HugeBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(n_bytes_, other.n_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

}  // namespace candor::platform
