#include "hub/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

namespace candor::hub {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

Expected<std::string> digest(const std::filesystem::path& path, const EVP_MD* kind, const std::string& prefix) {
  std::ifstream stream(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (!stream || context == nullptr || EVP_DigestInit_ex(context.get(), kind, nullptr) != 1) {
    return fail(ErrorKind::kIo, fmt::format("{}: cannot be read for its digest", path.string()));
  }
  EVP_DigestUpdate(context.get(), prefix.data(), prefix.size());
  std::vector<char> buffer(size_t{1} << 20);
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), stream.gcount() > 0) {
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(stream.gcount()));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int n_bytes = 0;
  EVP_DigestFinal_ex(context.get(), bytes.data(), &n_bytes);
  std::string text;
  for (unsigned int i = 0; i < n_bytes; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace

Expected<std::string> sha256_of_file(const std::filesystem::path& path) {
  return digest(path, EVP_sha256(), "");
}

Expected<std::string> git_sha1_of_file(const std::filesystem::path& path) {
  std::error_code ignored;
  std::string prefix = fmt::format("blob {}", std::filesystem::file_size(path, ignored));
  prefix += '\0';
  return digest(path, EVP_sha1(), prefix);
}

}  // namespace candor::hub
