#include "comm/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "candor/version.h"
#include "platform/futex.h"

namespace candor::comm {
namespace {

constexpr uint64_t kSegmentMagic = 0x73'6b'6e'61'72'64'6e'63;  // "cndranks"

struct Head {
  uint64_t magic = kSegmentMagic;
  std::array<char, 48> version{};
  int32_t n_ranks = 0;
};

constexpr size_t kEntriesAt = 4096;
constexpr size_t kRingsAt = kEntriesAt + kMaxRanks * sizeof(RankEntry);
static_assert(sizeof(Head) <= kEntriesAt && kRingsAt % alignof(Ring) == 0);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<RankState>::is_always_lock_free);

size_t bytes_of(int32_t n_ranks) {
  const auto n = static_cast<size_t>(n_ranks);
  return kRingsAt + n * n * sizeof(Ring);
}

Error no_memory(const std::string& what) {
  return fail(ErrorKind::kIo, "memory for ranks: " + what + ": " + std::strerror(errno));
}

Result<std::byte*> map(int descriptor, size_t n_bytes) {
  void* memory = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return no_memory("the system maps no " + std::to_string(n_bytes) + " bytes");
  return static_cast<std::byte*>(memory);
}

}  // namespace

std::string_view protocol_version() {
  static const std::string version =
      std::string(kVersion) + " numerics " + std::to_string(kNumericsVersion) + " ranks 2";
  return version;
}

void ring_bell(RankEntry& entry) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (entry.is_sleeping.load(std::memory_order_relaxed) == 0) return;
  entry.bell.fetch_add(1);
  platform::futex_wake_shared(entry.bell);
}

Result<std::shared_ptr<Segment>> Segment::make(int32_t n_ranks) {
  CANDOR_CHECK(n_ranks >= 1 && n_ranks <= kMaxRanks);
  const size_t n_bytes = bytes_of(n_ranks);
  const int descriptor = ::memfd_create("candor-ranks", MFD_CLOEXEC);
  if (descriptor < 0) return no_memory("the system makes none");
  if (::ftruncate(descriptor, static_cast<off_t>(n_bytes)) != 0) {
    const Error error = no_memory("no " + std::to_string(n_bytes) + " bytes");
    ::close(descriptor);
    return error;
  }
  auto memory = map(descriptor, n_bytes);
  if (!memory) {
    ::close(descriptor);
    return memory.error();
  }
  Head* head = new (*memory) Head{.n_ranks = n_ranks};
  protocol_version().copy(head->version.data(), head->version.size() - 1);
  for (int32_t i = 0; i < n_ranks; ++i)
    new (*memory + kEntriesAt + static_cast<size_t>(i) * sizeof(RankEntry)) RankEntry;
  return std::shared_ptr<Segment>(new Segment(descriptor, *memory, n_bytes, n_ranks));
}

Result<std::shared_ptr<Segment>> Segment::attach(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0 || static_cast<size_t>(found.st_size) < bytes_of(1)) {
    return fail(ErrorKind::kInvalidInput, "descriptor " + std::to_string(descriptor) + " is no memory of ranks");
  }
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  const auto n_bytes = static_cast<size_t>(found.st_size);
  auto memory = map(descriptor, n_bytes);
  if (!memory) return memory.error();
  const Head head = *reinterpret_cast<const Head*>(*memory);
  const int32_t n_entries = head.n_ranks >= 1 && head.n_ranks <= kMaxRanks ? head.n_ranks : 0;
  std::shared_ptr<Segment> segment(new Segment(descriptor, *memory, n_bytes, n_entries));
  const bool is_segment = head.magic == kSegmentMagic && n_entries > 0 && bytes_of(head.n_ranks) == n_bytes;
  if (!is_segment) {
    return fail(ErrorKind::kInvalidInput, "descriptor " + std::to_string(descriptor) + " is no memory of ranks");
  }
  if (std::string_view(head.version.data()) != protocol_version()) {
    return fail(ErrorKind::kInvalidInput, "rank 0 is candor " + std::string(head.version.data()) +
                                              ", and this one is " + std::string(protocol_version()) +
                                              ": start all ranks from one version");
  }
  return segment;
}

Segment::~Segment() {
  ::munmap(memory_, n_bytes_);
  ::close(descriptor_);
}

void Segment::keep_apart(int32_t rank, std::string_view host) {
  auto entry = std::make_unique<RankEntry>();
  host.copy(entry->host.data(), entry->host.size() - 1);
  apart_[static_cast<size_t>(rank)] = std::move(entry);
}

RankEntry& Segment::entry(int32_t rank) {
  CANDOR_DCHECK(rank >= 0 && rank < n_ranks_);
  if (const auto& apart = apart_[static_cast<size_t>(rank)]) return *apart;
  return *reinterpret_cast<RankEntry*>(memory_ + kEntriesAt + static_cast<size_t>(rank) * sizeof(RankEntry));
}

// New memory is zero, which is what an empty ring is.
Ring& Segment::ring(int32_t from, int32_t to) {
  const size_t number = static_cast<size_t>(from) * static_cast<size_t>(n_ranks_) + static_cast<size_t>(to);
  return *reinterpret_cast<Ring*>(memory_ + kRingsAt + number * sizeof(Ring));
}

}  // namespace candor::comm
