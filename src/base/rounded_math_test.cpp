// Against values of 90 digits, rounded to double (mpmath 1.4, 300 bits).

#include "base/rounded_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace candor {
namespace {

struct Known {
  double x;
  double y;
};
struct KnownPower {
  double base;
  double exponent;
  double power;
};
struct KnownAngle {
  double angle;
  double sin;
  double cos;
};

constexpr Known kLogs[] = {
    {0x1.999999999999ap-4, -0x1.26bb1bbb55515p+1},
    {0x1.0000000000000p-1, -0x1.62e42fefa39efp-1},
    {0x1.0000000000000p+1, 0x1.62e42fefa39efp-1},
    {0x1.8000000000000p+1, 0x1.193ea7aad030bp+0},
    {0x1.4000000000000p+3, 0x1.26bb1bbb55516p+1},
    {0x1.0000000000000p+5, 0x1.bb9d3beb8c86bp+1},
    {0x1.4000000000000p+5, 0x1.d82d33b32720dp+1},
    {0x1.3880000000000p+13, 0x1.26bb1bbb55516p+3},
    {0x1.e848000000000p+18, 0x1.a3ea669a05c01p+3},
    {0x1.e848000000000p+19, 0x1.ba18a998fffa0p+3},
    {0x1.312d000000000p+23, 0x1.01e3b843eaa73p+4},
    {0x1.56e1fc2f8f359p-997, -0x1.5963447f87fb5p+9},
    {0x1.6a09e667f3bccp-1, -0x1.62e42fefa39f1p-2},
    {0x1.6a09e667f3bcdp-1, -0x1.62e42fefa39eep-2},
    {0x1.0000000000001p+0, 0x1.fffffffffffffp-53},
    {0x1.fffffffffffffp-1, -0x1.0000000000000p-53},
    {0x1.fffffffffffffp+1023, 0x1.62e42fefa39efp+9},
    {0x1.f9fd1bcfb2152p+14, 0x1.4c552cfe85cd3p+3},
    {0x1.d767588f0d719p+13, 0x1.33e2eca51b84dp+3},
    {0x1.fc8ae532c7db2p+15, 0x1.62acae3aa3bcbp+3},
    {0x1.c4ba12d17dd83p+12, 0x1.1c697e767556fp+3},
    {0x1.a2a866dbae777p+15, 0x1.5c7360b012b09p+3},
    {0x1.1db1c8dee5a5fp+15, 0x1.5038f5f6622e5p+3},
    {0x1.6a7e4b72374cdp+12, 0x1.154c8d8241e1ap+3},
    {0x1.8c6f25ca9f2b2p+15, 0x1.5ab48dc8e4be9p+3},
};
constexpr Known kExponentials[] = {
    {0x1.0000000000000p+0, 0x1.5bf0a8b145769p+1},
    {-0x1.0000000000000p+0, 0x1.78b56362cef38p-2},
    {0x1.0000000000000p-1, 0x1.a61298e1e069cp+0},
    {0x1.79ca10c924223p-67, 0x1.0000000000000p+0},
    {-0x1.748cccccccccdp+9, 0x0.0000000000001p-1022},
    {0x1.62d999999999ap+9, 0x1.d75ae7a50ee14p+1023},
    {0x1.6000000000000p+6, 0x1.f1056dc7bf22dp+126},
    {-0x1.6000000000000p+6, 0x1.07b7112bc1ffep-127},
    {-0x1.43c0c72b7ac83p+9, 0x1.cc3950ce154c2p-935},
    {-0x1.73958c43478d0p+6, 0x1.f8b85621e47dbp-135},
    {-0x1.2d19e878f1262p+9, 0x1.2734812c54e8ep-869},
    {-0x1.1e803a5ec88aap+9, 0x1.4280ef199758ap-827},
    {-0x1.a6b14a5a9f668p+6, 0x1.75bd7cea6074fp-153},
    {0x1.c997cd2df4534p+8, 0x1.1f708ad77ca9ap+660},
    {-0x1.0756b04599207p+9, 0x1.1f15e71133b67p-760},
    {-0x1.837727b3a3f5ap+8, 0x1.00fb1d5826348p-559},
    {0x1.04fbb5953f48cp-1, 0x1.aa33604b29914p+0},
    {0x1.ca743687eb186p+0, 0x1.7fa53d137f84bp+2},
    {0x1.3bd04d2bcc158p-2, 0x1.5c7ba11a0aa3cp+0},
    {-0x1.a7325fe69c3b0p-2, 0x1.52ad489c371b8p-1},
    {0x1.e7af6b1c4c68cp+0, 0x1.ae0d05dd5aa83p+2},
    {-0x1.d04ca138bf348p+0, 0x1.4defa55f6ecc9p-3},
    {0x1.6f125b110bdf4p+0, 0x1.0c798a1cfeb3dp+2},
    {-0x1.aee15394b34dcp-1, 0x1.b96197c33fe80p-2},
};
constexpr KnownPower kPowers[] = {
    {0x1.3880000000000p+13, -0x1.0000000000000p-6, 0x1.bb5fad00ab22cp-1},
    {0x1.3880000000000p+13, -0x1.c000000000000p-4, 0x1.75f034d79e965p-2},
    {0x1.3880000000000p+13, -0x1.f000000000000p-2, 0x1.7a66224a8fc07p-7},
    {0x1.3880000000000p+13, -0x1.f800000000000p-1, 0x1.e459c57e28a47p-14},
    {0x1.e848000000000p+18, -0x1.0000000000000p-6, 0x1.a115829457fbep-1},
    {0x1.e848000000000p+18, -0x1.2000000000000p-3, 0x1.43873fa1bb869p-3},
    {0x1.e848000000000p+18, -0x1.4000000000000p-1, 0x1.1f91ef20d667dp-12},
    {0x1.e848000000000p+18, -0x1.f800000000000p-1, 0x1.4985fec80a8cbp-19},
    {0x1.e848000000000p+19, -0x1.0000000000000p-7, 0x1.cb9da5d7cd6ebp-1},
    {0x1.e848000000000p+19, -0x1.3400000000000p-1, 0x1.01c3fc9c4d793p-12},
    {0x1.e848000000000p+19, -0x1.fc00000000000p-1, 0x1.2b07b364c5e79p-20},
    {0x1.0000000000000p+1, -0x1.0000000000000p-1, 0x1.6a09e667f3bcdp-1},
    {0x1.0000000000000p+1, -0x1.8000000000000p+0, 0x1.6a09e667f3bcdp-2},
    {0x1.0000000000000p+1, -0x1.999999999999ap-4, 0x1.ddb680117ab12p-1},
    {0x1.0000000000000p+1, 0x1.0000000000000p-1, 0x1.6a09e667f3bcdp+0},
    {0x1.4000000000000p+3, -0x1.2c00000000000p+8, 0x1.56e1fc2f8f359p-997},
    {0x1.4000000000000p+3, 0x1.3400000000000p+8, 0x1.1ccf385ebc8a0p+1023},
};
constexpr KnownAngle kAngles[] = {
    {0x1.12e0be826d695p-30, 0x1.12e0be826d695p-30, 0x1.0000000000000p+0},
    {0x1.0000000000000p-1, 0x1.eaee8744b05f0p-2, 0x1.c1528065b7d50p-1},
    {0x1.91eb851eb851fp-1, 0x1.69e4fd79ac743p-1, 0x1.6a2ecb934b59ap-1},
    {0x1.926e978d4fdf4p-1, 0x1.6a41a99fd55b2p-1, 0x1.69d21a9805fb3p-1},
    {0x1.921fb54442d18p+0, 0x1.0000000000000p+0, 0x1.1a62633145c07p-54},
    {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1.0000000000000p+0},
    {0x1.0000000000000p+0, 0x1.aed548f090ceep-1, 0x1.14a280fb5068cp-1},
    {0x1.9000000000000p+6, -0x1.03425b78c4db8p-1, 0x1.b981dbf665fdfp-1},
    {0x1.ffe0000000000p+11, -0x1.fee26bf3a602ep-1, -0x1.0e3cd8b89b3a3p-4},
    {0x1.ffff000000000p+16, -0x1.268613f60babcp-1, -0x1.a2cebbb513e7cp-1},
    {0x1.fffff00000000p+19, -0x1.4cb305757fa66p-3, 0x1.f932ec65b1d71p-1},
    {0x1.fffff5e100000p+30, -0x1.e262042dfa58dp-1, -0x1.5739776dcf489p-2},
    {-0x1.d000000000000p+2, -0x1.a56adb62a27b9p-1, 0x1.22c6f50dc3fbep-1},
    {0x1.6000000000000p+4, -0x1.220a29f6eb9f4p-7, -0x1.fffadd8d4acdap-1},
    {0x1.6300000000000p+8, -0x1.f9bd0307d1de3p-16, -0x1.fffffffc18e4cp-1},
    {0x1.19bf8aab74de1p+17, -0x1.1379f9cace480p-1, 0x1.af931f15d3040p-1},
    {0x1.cc203cf2b4360p+16, 0x1.f4ffbd0ef0864p-1, 0x1.a642d2bca8239p-3},
    {0x1.2d4074be160a3p+18, 0x1.1a03813dc6c59p-1, -0x1.ab54e258382a9p-1},
    {0x1.8e7fcb7de94acp+19, -0x1.18ff5eb4079cap-2, -0x1.ec5872fb89530p-1},
    {0x1.60fb30a158fb3p+17, 0x1.52747a119bda4p-6, -0x1.ffe407bff71aep-1},
    {0x1.1bfc053cb9118p+19, -0x1.0492e03552ec1p-2, -0x1.ef25511a2ea1ap-1},
    {0x1.37f82f01717c2p+19, 0x1.fe3c9b909a39dp-1, 0x1.53a4a427ab77fp-4},
    {0x1.6bab62bc04b49p+18, -0x1.131a6ce599ee2p-1, 0x1.afd00dba8958dp-1},
};

TEST(rounded_math, logarithms_exponentials_and_powers_are_correctly_rounded) {
  for (const Known& one : kLogs) EXPECT_EQ(rounded_log(one.x), one.y) << one.x;
  for (const Known& one : kExponentials) EXPECT_EQ(rounded_exp(one.x), one.y) << one.x;
  for (const KnownPower& one : kPowers) {
    EXPECT_EQ(rounded_pow(one.base, one.exponent), one.power) << one.base << " " << one.exponent;
  }
}

TEST(rounded_math, sines_and_cosines_are_within_their_bound) {
  for (const KnownAngle& one : kAngles) {
    const SinCos found = rounded_sincos(one.angle);
    EXPECT_NEAR(found.sin, one.sin, 0x1p-52) << one.angle;
    EXPECT_NEAR(found.cos, one.cos, 0x1p-52) << one.angle;
    EXPECT_EQ(static_cast<float>(found.sin), static_cast<float>(one.sin)) << one.angle;
    EXPECT_EQ(static_cast<float>(found.cos), static_cast<float>(one.cos)) << one.angle;
  }
}

TEST(rounded_math, ends_of_the_range_are_those_of_libm) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(rounded_log(0.0), -kInf);
  EXPECT_EQ(rounded_log(kInf), kInf);
  EXPECT_TRUE(std::isnan(rounded_log(-1.0)));
  EXPECT_TRUE(std::isnan(rounded_log(std::nan(""))));
  EXPECT_EQ(rounded_exp(0.0), 1.0);
  EXPECT_EQ(rounded_exp(710.0), kInf);
  EXPECT_EQ(rounded_exp(kInf), kInf);
  EXPECT_EQ(rounded_exp(-746.0), 0.0);
  EXPECT_EQ(rounded_exp(-kInf), 0.0);
  EXPECT_TRUE(std::isnan(rounded_exp(std::nan(""))));
  EXPECT_EQ(rounded_pow(10.0, 1e300), kInf);
  EXPECT_EQ(rounded_pow(10.0, -1e300), 0.0);
  EXPECT_EQ(rounded_pow(1.0, 5.0), 1.0);
  EXPECT_EQ(rounded_pow(7.0, 0.0), 1.0);
  EXPECT_TRUE(std::isnan(rounded_pow(-2.0, 0.5)));
  EXPECT_TRUE(std::isnan(rounded_pow(kInf, -1.0)));
  EXPECT_TRUE(std::isnan(rounded_sincos(kInf).sin));
  EXPECT_TRUE(std::isnan(rounded_sincos(0x1p45).cos));
  EXPECT_EQ(rounded_sincos(0.0).cos, 1.0);
}

// What every build and processor must give: FNV-1a over the bits of 4 000 results.
TEST(rounded_math, its_bits_are_pinned) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](double value) { hash = (hash ^ std::bit_cast<uint64_t>(value)) * 0x100000001b3u; };
  for (int i = 1; i <= 1000; ++i) {
    const SinCos turn = rounded_sincos(i * 1234.567);
    add(turn.sin);
    add(turn.cos);
    add(rounded_pow(500000.0, -i / 1000.0));
    add(rounded_log(i * 0.37));
  }
  EXPECT_EQ(hash, 0x5c56de8b0dc4c6bu);
}

TEST(rounded_math, tanh_and_erf_are_within_their_bound) {
  for (double x = -30.0; x <= 30.0; x += 0.0371) {
    EXPECT_NEAR(rounded_tanh(x), std::tanh(x), 1e-15) << x;
    EXPECT_NEAR(rounded_erf(x), std::erf(x), 1e-15) << x;
  }
  EXPECT_EQ(rounded_erf(0.0), 0.0);
  EXPECT_TRUE(std::isnan(rounded_tanh(std::nan(""))) && std::isnan(rounded_erf(std::nan(""))));
}

}  // namespace
}  // namespace candor
