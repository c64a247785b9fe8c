#include "formats/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "formats/quote.h"

namespace candor::formats {
namespace {

// A new file beside `path`, under a name that no file has.
std::FILE* create_beside(const std::filesystem::path& path, std::filesystem::path& temporary) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    temporary = path.string() + fmt::format(".part{}", i);
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return nullptr;
    std::FILE* const file = ::fdopen(descriptor, "wb");
    if (file != nullptr) return file;
    const int cause = errno;
    ::close(descriptor);
    ::unlink(temporary.c_str());
    errno = cause;
    return nullptr;
  }
  return nullptr;
}

}  // namespace

Result<NewFile> NewFile::create(const std::filesystem::path& path) {
  NewFile file;
  file.path_ = path;
  file.file_.reset(create_beside(path, file.temporary_));
  if (file.file_ == nullptr) return file.cannot("create a file beside it");
  return file;
}

NewFile::~NewFile() {
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

Error NewFile::cannot(const char* step) const {
  return {ErrorKind::kIo,
          fmt::format("{}: cannot {}: {}", in_quotes(path_.string()), step, std::generic_category().message(errno))};
}

Result<void> NewFile::put(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return cannot("write");
  return {};
}

Result<void> NewFile::finish() {
  if (std::fflush(file_.get()) != 0) return cannot("write");
  if (::fsync(::fileno(file_.get())) != 0) return cannot("write it to the disk");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return cannot("replace it");
  file_.reset();
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  CANDOR_ASSIGN(NewFile file, NewFile::create(path));
  CANDOR_TRY(file.put(std::as_bytes(std::span(text))));
  return file.finish();
}

}  // namespace candor::formats
