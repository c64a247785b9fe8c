#include "net/addresses.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace candor::client {
namespace {

// The first n_bits of an address.
struct Block {
  std::array<uint8_t, 16> address{};
  size_t n_bits = 0;
};

bool begins_with(std::span<const uint8_t> address, const Block& block) {
  constexpr size_t kBits = 8;
  const size_t n_whole = block.n_bits / kBits;
  if (!std::equal(block.address.begin(), block.address.begin() + static_cast<std::ptrdiff_t>(n_whole), address.begin()))
    return false;
  const size_t n_rest = block.n_bits % kBits;
  const auto mask = static_cast<uint8_t>(0xFF00 >> n_rest);
  return n_rest == 0 || ((address[n_whole] ^ block.address[n_whole]) & mask) == 0;
}

// https://www.iana.org/assignments/iana-ipv4-special-registry, and multicast.
constexpr Block kSpecial4[] = {
    {{0}, 8},
    {{10}, 8},
    {{100, 64}, 10},
    {{127}, 8},
    {{169, 254}, 16},
    {{172, 16}, 12},
    {{192, 0, 0}, 24},
    {{192, 0, 2}, 24},
    {{192, 31, 196}, 24},
    {{192, 52, 193}, 24},
    {{192, 88, 99}, 24},
    {{192, 168}, 16},
    {{192, 175, 48}, 24},
    {{198, 18}, 15},
    {{198, 51, 100}, 24},
    {{203, 0, 113}, 24},
    {{224}, 4},
    {{240}, 4},
};

// https://www.iana.org/assignments/iana-ipv6-special-registry, of those inside of kGlobal6.
constexpr Block kGlobal6 = {{0x20}, 3};
constexpr Block kSpecial6[] = {
    {{0x20, 0x01, 0x00}, 23},              // protocols of the IETF, Teredo among them
    {{0x20, 0x01, 0x0d, 0xb8}, 32},        // documentation
    {{0x20, 0x02}, 16},                    // 6to4
    {{0x26, 0x20, 0x00, 0x4f, 0x80}, 48},  // AS112
    {{0x3f, 0xfe}, 16},                    // the 6bone that was
    {{0x3f, 0xff}, 20},                    // documentation
};
constexpr Block kMapped = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};

}  // namespace

bool is_public_address(std::span<const uint8_t> address) {
  const auto holds = [&](const Block& block) { return begins_with(address, block); };
  if (address.size() == 4) return std::ranges::none_of(kSpecial4, holds);
  if (address.size() != 16) return false;
  if (holds(kMapped)) return is_public_address(address.subspan(12));
  return holds(kGlobal6) && std::ranges::none_of(kSpecial6, holds);
}

}  // namespace candor::client
