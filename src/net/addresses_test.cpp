#include "net/addresses.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/address.hpp>

namespace candor::client {
namespace {

bool is_public(const char* text) {
  const auto address = boost::asio::ip::make_address(text);
  return address.is_v4() ? is_public_address(address.to_v4().to_bytes())
                         : is_public_address(address.to_v6().to_bytes());
}

TEST(addresses, of_the_public_internet_are_known) {
  for (const char* text : {"1.1.1.1",
                           "8.8.8.8",
                           "9.255.255.255",
                           "11.0.0.0",
                           "93.184.216.34",
                           "100.63.255.255",
                           "100.128.0.0",
                           "126.1.2.3",
                           "128.0.0.1",
                           "169.253.255.255",
                           "169.255.0.0",
                           "172.15.255.255",
                           "172.32.0.0",
                           "192.0.1.0",
                           "192.167.255.255",
                           "192.169.0.0",
                           "198.17.255.255",
                           "198.20.0.0",
                           "223.255.255.255",
                           "2606:4700::1111",
                           "2001:4860:4860::8888",
                           "2a00:1450:4001::200e",
                           "2003::1",
                           "2001:200::1",
                           "::ffff:8.8.8.8"}) {
    EXPECT_TRUE(is_public(text)) << text;
  }
}

TEST(addresses, of_own_networks_and_special_ones_are_not_public) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.8.9.1",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.0.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.7",
                           "203.0.113.9",
                           "224.0.0.1",
                           "239.255.255.250",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fdff::1",
                           "ff02::1",
                           "fec0::1",
                           "2001:db8::1",
                           "2001::1",
                           "2001:1ff::1",
                           "2002:7f00:1::",
                           "3fff::1",
                           "64:ff9b::7f00:1",
                           "64:ff9b:1::1",
                           "100::1",
                           "5f00::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "::ffff:169.254.169.254",
                           "::127.0.0.1",
                           "::8.8.8.8"}) {
    EXPECT_FALSE(is_public(text)) << text;
  }
  EXPECT_FALSE(is_public_address({}));
}

}  // namespace
}  // namespace candor::client
