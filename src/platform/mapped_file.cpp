#include "platform/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/utf8.h"

namespace candor::platform {
namespace {

std::string in_quotes(const std::filesystem::path& path) {
  std::string text(1, '\'');
  text += to_valid_utf8(path.string());
  text += '\'';
  return text;
}

Error refused(const std::filesystem::path& path, const char* step, int cause) {
  const ErrorKind kind = cause == ENOENT || cause == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo;
  if (kind == ErrorKind::kNotFound) return {kind, in_quotes(path) + ": there is no such file; check the path"};
  return {kind, in_quotes(path) + ": cannot " + step + ": " + std::generic_category().message(cause)};
}

const char* name_of_kind(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a folder";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    default:
      return "not a regular file";
  }
}

Result<size_t> regular_size(const std::filesystem::path& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorKind::kInvalidInput,
                in_quotes(path) + " is " + name_of_kind(status.st_mode) + "; name a regular file");
  }
  return static_cast<size_t>(status.st_size);
}

// Whole pages that lie in a part, or with `outward` those that it touches.
std::span<const std::byte> pages_of(std::span<const std::byte> part, bool outward) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t end = begin + part.size();
  const uintptr_t first = (begin + (outward ? 0 : page - 1)) / page * page;
  const uintptr_t last = (end + (outward ? page - 1 : 0)) / page * page;
  if (last <= first) return {};
  return {reinterpret_cast<const std::byte*>(first), last - first};
}

bool is_within(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return !part.empty() && !std::less<>()(part.data(), whole.data()) &&
         !std::less<>()(whole.data() + whole.size(), part.data() + part.size());
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return refused(path, "look at it", errno);
  CANDOR_TRY(regular_size(path, status));

  MappedFile file;
  file.path_ = path;
  // O_NONBLOCK: should the name have become a pipe since, opening it must not wait for a writer.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file.descriptor_ < 0) return refused(path, "open it for reading", errno);
  if (::fstat(file.descriptor_, &status) != 0) return refused(path, "look at it", errno);
  CANDOR_ASSIGN(const size_t n_bytes, regular_size(path, status));
  if (n_bytes == 0) return file;
  void* address = ::mmap(nullptr, n_bytes, PROT_READ, MAP_PRIVATE, file.descriptor_, 0);
  if (address == MAP_FAILED) return refused(path, "map it into memory", errno);
  file.data_ = static_cast<const std::byte*>(address);
  file.n_bytes_ = n_bytes;
  file.guard_ = guard_range(file.bytes());
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  data_ = std::exchange(other.data_, nullptr);
  n_bytes_ = std::exchange(other.n_bytes_, 0);
  guard_ = std::move(other.guard_);
  return *this;
}

MappedFile::~MappedFile() {
  release();
}

void MappedFile::release() noexcept {
  guard_.reset();
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), n_bytes_);
  if (descriptor_ >= 0) ::close(descriptor_);
  data_ = nullptr;
  n_bytes_ = 0;
  descriptor_ = -1;
}

Result<void> MappedFile::check_intact() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return refused(path_, "look at it", errno);
  if (static_cast<size_t>(status.st_size) < n_bytes_) {
    return fail(ErrorKind::kIo, in_quotes(path_) + ": the file has " + std::to_string(status.st_size) +
                                    " bytes, and had " + std::to_string(n_bytes_) +
                                    " when it was opened: another program has cut it; put the whole file there and "
                                    "try again");
  }
  if (!guard_ || !is_lost(*guard_)) return {};
  return fail(ErrorKind::kIo, in_quotes(path_) + ": bytes of the file could not be read: another program has cut it "
                                                 "meanwhile, or its disk fails; try again");
}

void MappedFile::will_read(std::span<const std::byte> part) const noexcept {
  if (!is_within(part, bytes())) return;
  const auto pages = pages_of(part, true);
  ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_WILLNEED);
}

void MappedFile::has_read(std::span<const std::byte> part) const noexcept {
  if (!is_within(part, bytes())) return;
  const auto pages = pages_of(part, false);
  if (!pages.empty()) ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_DONTNEED);
}

}  // namespace candor::platform
