#include "text/tokenizer/byte_alphabet.h"

#include <cstddef>

#include "base/utf8.h"

namespace candor::text {
namespace {

constexpr bool maps_to_itself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<uint32_t, 256> make_alphabet() {
  std::array<uint32_t, 256> alphabet{};
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) alphabet[byte] = maps_to_itself(byte) ? byte : next++;
  return alphabet;
}

constexpr uint32_t kAlphabetEnd = 0x100 + 68;

constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  const std::array<uint32_t, 256> alphabet = make_alphabet();
  for (uint32_t byte = 0; byte < 256; ++byte) bytes[alphabet[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr std::array<uint32_t, 256> kAlphabet = make_alphabet();
constexpr std::array<int16_t, kAlphabetEnd> kBytes = make_bytes();

}  // namespace

const std::array<uint32_t, 256>& byte_alphabet() {
  return kAlphabet;
}

std::optional<std::string> decode_byte_piece(std::string_view piece) {
  std::string bytes;
  for (size_t at = 0; at < piece.size();) {
    const CodePoint c = decode_utf8(piece, at);
    if (!c.valid || c.value >= kAlphabetEnd || kBytes[c.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[c.value]));
    at += c.length;
  }
  return bytes;
}

}  // namespace candor::text
