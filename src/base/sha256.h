#pragma once
// SHA-256 (FIPS 180-4), by OpenSSL. Any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace candor {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::span<const std::byte> bytes);
Sha256 sha256(std::string_view text);

// Lower-case hexadecimal digits, two a byte.
std::string to_hex(std::span<const uint8_t> bytes);

}  // namespace candor
