#pragma once
// A regular file mapped read-only into memory. Owns the mapping; movable; views of bytes() live as long as it does.
// Any thread may read. Folders, devices, pipes and sockets are refused without being opened.
// Where another program shortens the file meanwhile, what is gone reads as zeros (lost_pages.h) instead of ending the
// process: ask check_intact() behind every read, before what was read is used or an error about it is told.

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "platform/lost_pages.h"

namespace candor::platform {

class MappedFile {
 public:
  // Errors name the path and the cause. An empty file gives an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, n_bytes_}; }
  const std::filesystem::path& path() const { return path_; }

  // An error, naming the file, when it has become shorter since it was opened or bytes of it could not be read.
  Result<void> check_intact() const;

  // Hints, for bytes that are read once; of a part that is not this file's, nothing. will_read: the system begins to
  // fetch it. has_read: it leaves this process' memory, and is fetched again should it be read after all.
  void will_read(std::span<const std::byte> part) const noexcept;
  void has_read(std::span<const std::byte> part) const noexcept;

 private:
  MappedFile() = default;
  void release() noexcept;

  std::filesystem::path path_;
  int descriptor_ = -1;  // kept open, so that check_intact() asks about this file and not about the name
  const std::byte* data_ = nullptr;
  size_t n_bytes_ = 0;
  RangeGuard guard_;
};

}  // namespace candor::platform
