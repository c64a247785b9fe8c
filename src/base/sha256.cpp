#include "base/sha256.h"

// The plain functions: they cannot fail and keep nothing for each thread, so that they work while the process ends.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace candor {

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(digest.data(), &context);
  return digest;
}

Sha256 sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

std::string to_hex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace candor
