#include "sandbox/helper_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace candor::sandbox {
namespace {

std::string reason(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

// MFD_EXEC is younger than some kernels, which refuse it, and needed by some that are younger.
int create_in_memory() {
  constexpr unsigned kMayExecute = 0x10;
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create("candor-helper", kFlags | kMayExecute);
  return fd < 0 && errno == EINVAL ? ::memfd_create("candor-helper", kFlags) : fd;
}

// Written, reopened for reading, and without a name: what is open for writing cannot be executed.
Result<Descriptor> temporary_file_in(const std::string& folder, std::span<const std::byte> program) {
  std::string path = folder + "/candor-helper-XXXXXX";
  const Descriptor written(::mkostemp(path.data(), O_CLOEXEC));
  if (!written) return fail(ErrorKind::kIo, reason(folder));
  const bool is_whole = write_all(written.number(), program) && ::fchmod(written.number(), S_IRUSR | S_IXUSR) == 0;
  Descriptor file(is_whole ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1);
  const std::string why = reason(folder);
  ::unlink(path.c_str());
  if (!file) return fail(ErrorKind::kIo, why);
  file.raise();
  return file;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) ::close(number_);
    number_ = other.release();
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

int Descriptor::release() {
  return std::exchange(number_, -1);
}

void Descriptor::raise() {
  if (number_ < 0 || number_ > STDERR_FILENO) return;
  const int raised = ::fcntl(number_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(number_);
  number_ = raised;
}

Result<Descriptor> program_in_memory(std::span<const std::byte> program) {
  Descriptor file(create_in_memory());
  file.raise();
  if (!file || !write_all(file.number(), program)) return fail(ErrorKind::kIo, reason("a file in memory"));
  if (::fcntl(file.number(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(ErrorKind::kIo, reason("sealing a file in memory"));
  }
  return file;
}

Result<Descriptor> program_in_temporary_file(std::span<const std::byte> program) {
  const char* named = std::getenv("TMPDIR");
  std::string why;
  for (const char* folder : {named, "/tmp", "/var/tmp", "/dev/shm"}) {
    if (folder == nullptr) continue;
    auto file = temporary_file_in(folder, program);
    if (file) return file;
    why += (why.empty() ? "" : "; ") + file.error().message;
  }
  return fail(ErrorKind::kIo, why);
}

}  // namespace candor::sandbox
