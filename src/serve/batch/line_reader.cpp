#include "serve/batch/line_reader.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace candor::serve {

Result<LineReader> LineReader::open(const std::filesystem::path& path, size_t max_bytes) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return fail(ErrorKind::kNotFound, fmt::format("{}: there is no such file", path.string()));
  if (!std::filesystem::is_regular_file(path, ignored))
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: is no regular file; those of a batch are read more than once", path.string()));
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr)
    return fail(ErrorKind::kIo, fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  return LineReader(file, path, max_bytes);
}

Result<std::optional<FileLine>> LineReader::next() {
  FileLine line{.text = {}, .number = ++number_};
  for (int byte = 0; (byte = getc_unlocked(file_.get())) != EOF;) {
    ++at_;
    line.end = at_;
    if (byte == '\n') return std::optional(std::move(line));
    if (line.text.size() == max_bytes_)
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}: line {}: longer than {} bytes", path_.string(), line.number, max_bytes_));
    line.text.push_back(static_cast<char>(byte));
  }
  if (std::ferror(file_.get()) != 0)
    return fail(ErrorKind::kIo, fmt::format("{}: line {}: cannot be read", path_.string(), line.number));
  if (line.text.empty()) return std::optional<FileLine>();
  line.is_whole = false;
  return std::optional(std::move(line));
}

}  // namespace candor::serve
