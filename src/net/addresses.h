#pragma once
// Which addresses belong to the public internet, and to nobody's own network. Plain functions; any thread.

#include <cstdint>
#include <functional>
#include <span>

namespace candor::client {

// address: 4 bytes of IPv4, or 16 of IPv6, the first one first.
using AddressCheck = std::function<bool(std::span<const uint8_t> address)>;

// Not so: private, loopback, link-local, shared, multicast, documentation, benchmarks, reserved, unspecified and
// tunnels (IANA's registries of special addresses); of IPv6 everything outside of 2000::/3. An IPv4 address inside of
// an IPv6 one (::ffff:a.b.c.d) is judged as IPv4.
bool is_public_address(std::span<const uint8_t> address);

}  // namespace candor::client
