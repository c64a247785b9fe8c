#pragma once
// The file into which a download is written, and which the next try continues. It is opened exclusively: two downloads
// of the same file do not mix. Anything under its name that is not a plain file of this user with one name (a link that
// somebody put there, say) is removed, not followed. One thread.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/error.h"

namespace candor::hub {

class PartialFile {
 public:
  // With the bytes that an earlier try left. An error while another process has it open.
  static Result<PartialFile> open(const std::filesystem::path& path);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return n_bytes_; }

  Result<void> append(std::span<const std::byte> bytes);
  // Begins anew.
  Result<void> clear();
  // Flushes it to the disk and gives it its name; what stood there is replaced.
  Result<void> become(const std::filesystem::path& target);
  void remove();

 private:
  PartialFile() = default;
  Error cannot(const char* step, int cause) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t n_bytes_ = 0;
};

}  // namespace candor::hub
