#pragma once
// A fixed 64-bit hash, the same on every machine, for hash tables and fingerprints. It is not cryptographic: a lookup
// by hash must compare the keys themselves on a hit.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace candor {

constexpr uint64_t hash_mix(uint64_t a, uint64_t b) {
  uint64_t x = a ^ (b + 0x9e3779b97f4a7c15ull + (a << 12) + (a >> 4));
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

inline uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0) {
  uint64_t h = hash_mix(seed, bytes.size());
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    h = hash_mix(h, word);
  }
  uint64_t tail = 0;
  for (size_t k = 0; i < bytes.size(); ++i, ++k) tail |= std::to_integer<uint64_t>(bytes[i]) << (8 * k);
  return hash_mix(h, tail);
}

}  // namespace candor
