#include "serve/responses/sealed_text.h"

#include <openssl/evp.h>

#include <cstddef>
#include <limits>

#include "base/utf8.h"

namespace candor::serve::responses {
namespace {

constexpr std::string_view kMark = "candor1.";
constexpr size_t kMostBytes = std::numeric_limits<int>::max() / 2;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string sealed(std::string_view text) {
  text = text.substr(0, kMostBytes);
  std::string code((text.size() + 2) / 3 * 4 + 1, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(code.data()), bytes_of(text), static_cast<int>(text.size()));
  code.pop_back();
  return std::string(kMark) + code;
}

std::optional<std::string> unsealed(std::string_view sealed_text) {
  if (!sealed_text.starts_with(kMark)) return std::nullopt;
  const std::string_view code = sealed_text.substr(kMark.size());
  if (code.size() % 4 != 0 || code.size() > kMostBytes) return std::nullopt;
  std::string text(code.size() / 4 * 3, '\0');
  const int n =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes_of(code), static_cast<int>(code.size()));
  if (n < 0) return std::nullopt;
  const size_t n_padding = code.ends_with("==") ? 2 : code.ends_with("=") ? 1 : 0;
  text.resize(static_cast<size_t>(n) - n_padding);
  if (sealed(text) != sealed_text || first_invalid_utf8(text) != text.size()) return std::nullopt;
  return text;
}

}  // namespace candor::serve::responses
