#pragma once
// The 256 characters under which byte-level vocabularies write bytes (GPT-2's table): printable characters of Latin-1
// stand for themselves, the other 68 bytes are U+0100 and up in order.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace candor::text {

// By byte.
const std::array<uint32_t, 256>& byte_alphabet();

// The bytes that a piece stands for; nothing if it holds a character that stands for no byte.
std::optional<std::string> decode_byte_piece(std::string_view piece);

}  // namespace candor::text
