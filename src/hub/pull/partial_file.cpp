#include "hub/pull/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/utf8.h"

namespace candor::hub {
namespace {

bool is_ours_alone(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == ::geteuid();
}

// The name still stands for the open file: nobody has finished, removed or replaced it before we had the lock.
bool is_named(int descriptor, const std::filesystem::path& path) {
  struct stat open_one {
  }, named_one{};
  return ::fstat(descriptor, &open_one) == 0 && ::lstat(path.c_str(), &named_one) == 0 &&
         open_one.st_ino == named_one.st_ino && open_one.st_dev == named_one.st_dev;
}

}  // namespace

Error PartialFile::cannot(const char* step, int cause) const {
  return {ErrorKind::kIo, fmt::format("'{}': cannot {}: {}", to_valid_utf8(path_.string()), step,
                                      std::generic_category().message(cause))};
}

Result<PartialFile> PartialFile::open(const std::filesystem::path& path) {
  constexpr int kTries = 10;
  PartialFile file;
  file.path_ = path;
  for (int i = 0; i < kTries; ++i) {
    if (file.descriptor_ >= 0) ::close(file.descriptor_);
    // O_NONBLOCK: should a pipe stand there, opening it must not wait for a reader.
    file.descriptor_ =
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    const int cause = file.descriptor_ < 0 ? errno : 0;
    struct stat status {};
    const bool is_foreign = cause == ELOOP || cause == ENXIO || cause == EISDIR ||
                            (cause == 0 && (::fstat(file.descriptor_, &status) != 0 || !is_ours_alone(status)));
    if (is_foreign) {
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) return file.cannot("remove what stands there", errno);
      continue;
    }
    if (cause != 0) return file.cannot("write it", cause);
    // Where the file system knows no locks, two downloads at once end in a wrong digest, which is noticed.
    if (::flock(file.descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) break;
    if (!is_named(file.descriptor_, path)) continue;
    file.n_bytes_ = static_cast<uint64_t>(status.st_size);
    return file;
  }
  return fail(ErrorKind::kIo,
              fmt::format("'{}': another program is writing it; wait for it, or end it", to_valid_utf8(path.string())));
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      n_bytes_(std::exchange(other.n_bytes_, 0)) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> PartialFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot("write it", errno);
    n_bytes_ += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Result<void> PartialFile::clear() {
  if (::ftruncate(descriptor_, 0) != 0) return cannot("begin it anew", errno);
  n_bytes_ = 0;
  return {};
}

Result<void> PartialFile::become(const std::filesystem::path& target) {
  if (::fsync(descriptor_) != 0) return cannot("write it to the disk", errno);
  if (::rename(path_.c_str(), target.c_str()) != 0) return cannot("give it its name", errno);
  return {};
}

void PartialFile::remove() {
  ::unlink(path_.c_str());
}

}  // namespace candor::hub
