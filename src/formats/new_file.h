#pragma once
// A file that appears under its name when it is whole: it grows under a temporary name beside it, and finish() flushes
// it to the disk and renames it. Dropped before that, it is removed and an older file stays untouched. One thread.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"

namespace candor::formats {

class NewFile {
 public:
  static Result<NewFile> create(const std::filesystem::path& path);

  NewFile(NewFile&& other) noexcept = default;
  NewFile& operator=(NewFile&& other) noexcept = delete;
  ~NewFile();

  Result<void> put(std::span<const std::byte> bytes);
  Result<void> finish();
  bool is_open() const { return file_ != nullptr; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  NewFile() = default;
  Error cannot(const char* step) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::unique_ptr<std::FILE, Close> file_;  // null once finished
};

// The same at once.
Result<void> write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace candor::formats
