#include "prefix_store/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "formats/new_file.h"

namespace candor::prefix_store {
namespace {

constexpr uint64_t kIndexMagic = 0x3158444e49564b43;  // "CKVINDX1"
constexpr mode_t kOwnerOnly = 0600;

struct IndexHead {
  uint64_t magic = kIndexMagic;
  uint64_t n_records = 0;
  uint64_t segment_bytes = 0;
  uint64_t sum = 0;  // of the records
};

struct IndexRow {
  RecordHeader header{};
  uint64_t offset = 0;
};

std::filesystem::path index_of(std::filesystem::path path) {
  return path.replace_extension(".index");
}

bool read_at(int file, uint64_t offset, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

bool write_at(int file, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

uint64_t size_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && status.st_size > 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);  // the other one closes it
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::shared_ptr<Segment> Segment::open(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  return std::shared_ptr<Segment>(new Segment(path, std::move(file)));
}

Result<std::shared_ptr<Segment>> Segment::create(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly));
  if (!file.is_open()) {
    return fail(ErrorKind::kIo, fmt::format("{} cannot be made: {}", path.string(), std::strerror(errno)));
  }
  return std::shared_ptr<Segment>(new Segment(path, std::move(file)));
}

bool Segment::is_at_its_path() const {
  struct stat own {};
  struct stat there {};
  return ::fstat(file_.number(), &own) == 0 && ::lstat(path_.c_str(), &there) == 0 && own.st_ino == there.st_ino &&
         own.st_dev == there.st_dev;
}

bool Segment::read_index(std::vector<RecordPlace>& records) {
  const Descriptor file(::open(index_of(path_).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  IndexHead head;
  if (!file.is_open() || !read_at(file.number(), 0, std::as_writable_bytes(std::span(&head, 1)))) return false;
  const uint64_t n_bytes = size_of(file.number()) - sizeof head;
  const bool is_whole = head.magic == kIndexMagic && head.segment_bytes == size_of(file_.number()) &&
                        n_bytes / sizeof(IndexRow) == head.n_records && n_bytes % sizeof(IndexRow) == 0;
  if (!is_whole) return false;
  std::vector<IndexRow> rows(head.n_records);
  const auto bytes = std::as_writable_bytes(std::span(rows));
  if (!read_at(file.number(), sizeof head, bytes) || checksum(bytes) != head.sum) return false;
  for (const IndexRow& row : rows) {
    const bool is_inside =
        row.offset <= head.segment_bytes && row.header.record_bytes() <= head.segment_bytes - row.offset;
    if (!is_sound(row.header) || !is_inside) return false;
  }
  for (const IndexRow& row : rows) records.push_back({row.header, row.offset});
  end_ = head.segment_bytes;
  return true;
}

std::vector<RecordPlace> Segment::find_new(uint64_t& n_unsound) {
  std::vector<RecordPlace> records;
  if (is_broken_ || (end_ == 0 && read_index(records))) return records;
  const uint64_t size = size_of(file_.number());
  while (size > end_) {
    RecordPlace place{.offset = end_};
    const bool is_there = size - end_ >= sizeof(RecordHeader) &&
                          read_at(file_.number(), end_, std::as_writable_bytes(std::span(&place.header, 1)));
    if (!is_there) break;
    if (place.header.magic == 0) break;  // being written, or it was when the writer ended
    if (!is_sound(place.header)) {
      is_broken_ = true;
      break;
    }
    if (place.header.record_bytes() > size - end_) break;
    end_ += place.header.record_bytes();
    records.push_back(place);
  }
  n_unsound += size > end_ ? size - end_ : 0;
  return records;
}

bool Segment::read(uint64_t offset, std::span<std::byte> bytes) const {
  return read_at(file_.number(), offset, bytes);
}

// The header last: what is found is whole.
Result<uint64_t> Segment::append(const RecordHeader& header, std::span<const std::byte> payload) {
  const uint64_t offset = end_;
  const uint64_t n_bytes = header.record_bytes();
  const bool is_written = ::ftruncate(file_.number(), static_cast<off_t>(offset + n_bytes)) == 0 &&
                          write_at(file_.number(), offset + sizeof header, payload) &&
                          write_at(file_.number(), offset, std::as_bytes(std::span(&header, 1)));
  if (!is_written) {
    const int cause = errno;
    static_cast<void>(::ftruncate(file_.number(), static_cast<off_t>(offset)) == 0);
    return fail(ErrorKind::kIo, fmt::format("{} cannot be written: {}", path_.string(), std::strerror(cause)));
  }
  end_ += n_bytes;
  return offset;
}

Result<void> Segment::write_index(std::span<const RecordPlace> records) const {
  std::vector<IndexRow> rows;
  rows.reserve(records.size());
  for (const RecordPlace& place : records) rows.push_back({place.header, place.offset});
  const auto bytes = std::as_bytes(std::span(rows));
  const IndexHead head{.n_records = rows.size(), .segment_bytes = end_, .sum = checksum(bytes)};
  CANDOR_ASSIGN(formats::NewFile file, formats::NewFile::create(index_of(path_)));
  CANDOR_TRY(file.put(std::as_bytes(std::span(&head, 1))));
  CANDOR_TRY(file.put(bytes));
  return file.finish();
}

}  // namespace candor::prefix_store
