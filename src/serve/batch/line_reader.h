#pragma once
// Lines of a file, one after the other, each of bounded length. One thread.

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

namespace candor::serve {

struct FileLine {
  std::string text;      // without its end
  size_t number = 0;     // from 1
  uint64_t end = 0;      // where the next one begins, in bytes
  bool is_whole = true;  // false: the file ends without a newline
};

class LineReader {
 public:
  static Result<LineReader> open(const std::filesystem::path& path, size_t max_bytes);

  // Nothing at the end. Refuses a line of more than max_bytes, by its number.
  Result<std::optional<FileLine>> next();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  LineReader(std::FILE* file, std::filesystem::path path, size_t max_bytes)
      : file_(file), path_(std::move(path)), max_bytes_(max_bytes) {}

  std::unique_ptr<std::FILE, Close> file_;
  std::filesystem::path path_;
  size_t max_bytes_;
  size_t number_ = 0;
  uint64_t at_ = 0;
};

}  // namespace candor::serve
