#include "hub/pull/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "base/sha256.h"
#include "base/utf8.h"

namespace candor::hub {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Error cannot_read(const std::filesystem::path& path, int cause) {
  return fail(ErrorKind::kIo, fmt::format("'{}': cannot be read for its digest: {}", to_valid_utf8(path.string()),
                                          std::generic_category().message(cause)));
}

// with_size: "blob SIZE\0" comes before the content.
Result<std::string> digest(const std::filesystem::path& path, const EVP_MD* kind, bool with_size,
                           const DigestProgress& progress) {
  const Descriptor file(path);
  struct stat status {};
  if (file.number() < 0 || ::fstat(file.number(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return cannot_read(path, EISDIR);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (context == nullptr || EVP_DigestInit_ex(context.get(), kind, nullptr) != 1) return cannot_read(path, ENOMEM);
  std::string prefix = with_size ? fmt::format("blob {}", status.st_size) : std::string();
  if (with_size) prefix += '\0';
  EVP_DigestUpdate(context.get(), prefix.data(), prefix.size());
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t done = 0;
  for (ssize_t n = 1; n != 0;) {
    n = ::read(file.number(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_read(path, errno);
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(n));
    done += static_cast<uint64_t>(n);
    if (progress && !progress(done)) return fail(ErrorKind::kCancelled, "stopped while a file's digest was computed");
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int n_bytes = 0;
  EVP_DigestFinal_ex(context.get(), bytes.data(), &n_bytes);
  return to_hex(std::span(bytes).first(n_bytes));
}

}  // namespace

Result<std::string> sha256_of_file(const std::filesystem::path& path, const DigestProgress& progress) {
  return digest(path, EVP_sha256(), false, progress);
}

Result<std::string> git_sha1_of_file(const std::filesystem::path& path, const DigestProgress& progress) {
  return digest(path, EVP_sha1(), true, progress);
}

}  // namespace candor::hub
