#pragma once
// A regular file mapped read-only into memory. Owns the mapping; movable; views of bytes() live as long as it does.
// Any thread may read. Folders, devices, pipes and sockets are refused without being opened.
// A file that another program shortens while it is mapped cannot be protected: reading a page past the new end raises
// SIGBUS. Callers that read much ask still_intact() before they do, which turns most such cases into an error; copying
// what is needed (as backends do when they pack weights) ends the exposure.

#include <cstddef>
#include <filesystem>
#include <span>

#include "base/error.h"

namespace candor::platform {

class MappedFile {
 public:
  // Errors name the path and the cause. An empty file gives an empty span.
  static Expected<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, n_bytes_}; }
  const std::filesystem::path& path() const { return path_; }

  // The file still has every byte that is mapped.
  bool still_intact() const;

 private:
  MappedFile() = default;
  void release() noexcept;

  std::filesystem::path path_;
  int descriptor_ = -1;  // kept open, so that still_intact() asks about this file and not about the name
  const std::byte* data_ = nullptr;
  size_t n_bytes_ = 0;
};

}  // namespace candor::platform
