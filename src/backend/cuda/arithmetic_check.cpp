#include "backend/cuda/arithmetic_check.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "backend/cuda/kernels/kernel_list.h"
#include "base/half.h"
#include "platform/float_mode.h"

namespace candor::backend::cuda {
namespace {

constexpr const char* kNames[kTriedWords] = {"fma",     "mul",         "add",          "sub",    "div",
                                             "sqrt",    "to int of",   "float of int", "f16 of", "f32 of f16",
                                             "bf16 of", "f32 of bf16", "dot4"};
enum Word { kFma, kMul, kAdd, kSub, kDiv, kSqrt, kToInt, kToFloat, kToHalf, kFromHalf, kToBf16, kFromBf16, kDot4 };

// Every binade's border and what lies beside it is too many: the ends, and where formats change.
std::vector<float> special_numbers() {
  std::vector<float> all;
  for (const uint32_t bits : {0x00000000u, 0x00000001u, 0x00400000u, 0x007fffffu, 0x00800000u, 0x00800001u, 0x00ffffffu,
                              0x01000000u, 0x0b000000u, 0x1f800000u, 0x1fffffffu, 0x20000000u, 0x33000000u, 0x33000001u,
                              0x38800000u, 0x387fe000u, 0x3f000000u, 0x3f7fffffu, 0x3f800000u, 0x3f800001u, 0x3fc00000u,
                              0x40400000u, 0x477fefffu, 0x477ff000u, 0x4b000001u, 0x4effffffu, 0x4f000000u, 0x5f000000u,
                              0x7f000000u, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fc01234u}) {
    all.push_back(std::bit_cast<float>(bits));
    all.push_back(std::bit_cast<float>(bits | 0x80000000u));
  }
  return all;
}

struct Triples {
  std::vector<float> a{}, b{}, c{};

  void add(float x, float y, float z) {
    a.push_back(x);
    b.push_back(y);
    c.push_back(z);
  }
};

// All triples of the special numbers; random bits; and products and sums that end near the smallest normal number.
Triples make_triples(int64_t n_random) {
  Triples triples;
  const std::vector<float> special = special_numbers();
  for (const float x : special) {
    for (const float y : special) {
      for (const float z : special) triples.add(x, y, z);
    }
  }
  std::mt19937 random(20);
  const auto any = [&random] { return std::bit_cast<float>(static_cast<uint32_t>(random())); };
  const auto of_binade = [&random](int32_t exponent) {
    const auto bits = static_cast<uint32_t>(random());
    return std::bit_cast<float>((bits & 0x807fffffu) | static_cast<uint32_t>(exponent + 127) << 23);
  };
  for (int64_t i = 0; i < n_random; ++i) {
    const auto exponent = static_cast<int32_t>(random() % 120) - 60;
    const auto off = static_cast<int32_t>(random() % 5) - 3;
    if (i % 2 == 0)
      triples.add(any(), any(), any());
    else
      triples.add(of_binade(exponent), of_binade(-126 + off - exponent),
                  of_binade(-126 + static_cast<int32_t>(random() % 4)));
  }
  return triples;
}

int32_t dot4_of(uint32_t a, uint32_t b, uint32_t c) {
  for (int32_t i = 0; i < 32; i += 8) {
    c += static_cast<uint32_t>(int32_t{static_cast<int8_t>(a >> i)} * int32_t{static_cast<int8_t>(b >> i)});
  }
  return static_cast<int32_t>(c);
}

uint32_t to_int_of(float a) {
  if (a != a) return 0;
  if (a >= 2147483648.0f) return INT32_MAX;
  if (a < -2147483648.0f) return static_cast<uint32_t>(INT32_MIN);
  return static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(a)));
}

std::array<uint32_t, kTriedWords> expected_words(float a, float b, float c) {
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  const auto low = static_cast<uint16_t>(bits(a) & 0xffffu);
  std::array<uint32_t, kTriedWords> words{};
  words[kFma] = bits(std::fma(a, b, c));
  words[kMul] = bits(a * b);
  words[kAdd] = bits(a + b);
  words[kSub] = bits(a - b);
  words[kDiv] = bits(a / b);
  words[kSqrt] = bits(std::sqrt(a));
  words[kToInt] = to_int_of(a);
  words[kToFloat] = bits(static_cast<float>(static_cast<int32_t>(bits(a))));
  words[kToHalf] = f32_to_f16(a);
  words[kFromHalf] = bits(f16_to_f32(low));
  words[kToBf16] = f32_to_bf16(a);
  words[kFromBf16] = bits(bf16_to_f32(low));
  words[kDot4] = static_cast<uint32_t>(dot4_of(bits(a), bits(b), bits(c)));
  return words;
}

// NaN of an operation has other bits on every kind of machine; conversions are by base/half.h to the last bit.
bool is_same(int32_t word, uint32_t seen, uint32_t expected) {
  const auto is_nan = [](uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; };
  return seen == expected || (word <= kSqrt && is_nan(seen) && is_nan(expected));
}

bool is_at_border(uint32_t seen, uint32_t expected) {
  const uint32_t low = std::min(seen & 0x7fffffffu, expected & 0x7fffffffu);
  const uint32_t high = std::max(seen & 0x7fffffffu, expected & 0x7fffffffu);
  return low == 0 && high == 0x00800000u;
}

void compare(const Triples& triples, const std::vector<uint32_t>& seen, ArithmeticReport& report) {
  const platform::ScopedFloatMode mode;
  const size_t n = triples.a.size();
  for (size_t i = 0; i < n; ++i) {
    const float a = triples.a[i], b = triples.b[i], c = triples.c[i];
    const std::array<uint32_t, kTriedWords> expected = expected_words(a, b, c);
    for (int32_t word = 0; word < kTriedWords; ++word) {
      const auto w = static_cast<size_t>(word);
      const uint32_t got = seen[w * n + i];
      if (is_same(word, got, expected[w])) continue;
      ++report.n_wrong;
      if (word <= kSqrt && is_at_border(got, expected[w])) ++report.n_wrong_at_border;
      if (!report.first.empty()) continue;
      report.first = fmt::format("{}({:#010x}, {:#010x}, {:#010x}) is {:#010x}, and {:#010x} on the host", kNames[w],
                                 std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b), std::bit_cast<uint32_t>(c),
                                 got, expected[w]);
    }
  }
  report.n_operations = static_cast<int64_t>(n) * kTriedWords;
}

}  // namespace

Result<ArithmeticReport> check_arithmetic(Device& device, int64_t n_random) {
  const Triples triples = make_triples(n_random);
  const size_t n = triples.a.size();
  const auto upload = [&](const std::vector<float>& values) -> Result<DeviceMemory> {
    CANDOR_ASSIGN(DeviceMemory memory, DeviceMemory::make(device, n * sizeof(float)));
    device.copy_in(memory.data(), values.data(), n * sizeof(float));
    return memory;
  };
  CANDOR_ASSIGN(const DeviceMemory a, upload(triples.a));
  CANDOR_ASSIGN(const DeviceMemory b, upload(triples.b));
  CANDOR_ASSIGN(const DeviceMemory c, upload(triples.c));
  std::vector<uint32_t> seen(kTriedWords * n);
  CANDOR_ASSIGN(const DeviceMemory out, DeviceMemory::make(device, seen.size() * sizeof(uint32_t)));
  constexpr uint32_t kThreads = 256;
  device.run(kernel::try_words, {.x = static_cast<uint32_t>((n + kThreads - 1) / kThreads), .n_threads = kThreads},
             {a.as<float>(), b.as<float>(), c.as<float>(), out.as<uint32_t>(), static_cast<int64_t>(n)});
  device.copy_out(seen.data(), out.data(), seen.size() * sizeof(uint32_t));
  CANDOR_TRY(device.status());
  ArithmeticReport report;
  compare(triples, seen, report);
  return report;
}

}  // namespace candor::backend::cuda
