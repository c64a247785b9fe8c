#include "kernels/interleave.h"

#include <cstdint>
#include <cstring>

namespace candor::kernels {
namespace {

constexpr size_t kRows = 16;

// Four elements of 4 bytes, which every 64-bit processor has registers for.
using Quad = uint32_t __attribute__((vector_size(16)));
using Octet = uint16_t __attribute__((vector_size(16)));

Quad load(const std::byte* src) {
  Quad quad;
  std::memcpy(&quad, src, sizeof(quad));
  return quad;
}
template <class Vector>
void store(std::byte* dst, Vector vector) {
  std::memcpy(dst, &vector, sizeof(vector));
}

// column[i] = element i of four rows.
void transpose(const std::byte* rows, size_t stride_bytes, Quad (&column)[4]) {
  const Quad a = load(rows);
  const Quad b = load(rows + stride_bytes);
  const Quad c = load(rows + 2 * stride_bytes);
  const Quad d = load(rows + 3 * stride_bytes);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  column[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  column[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  column[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  column[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

// Four elements of four rows, and eight elements of eight rows. dst: of the first element and row.
struct Words {
  static constexpr size_t kSize = 4;
  static constexpr size_t kStep = 4;
  static void weave(const std::byte* rows, size_t stride_bytes, std::byte* dst) {
    Quad column[4];
    transpose(rows, stride_bytes, column);
    for (size_t k = 0; k < 4; ++k) store(dst + k * kRows * kSize, column[k]);
  }
};
struct Halves {
  static constexpr size_t kSize = 2;
  static constexpr size_t kStep = 8;
  static void weave(const std::byte* rows, size_t stride_bytes, std::byte* dst) {
    Quad first[4];  // pairs of elements
    Quad second[4];
    transpose(rows, stride_bytes, first);
    transpose(rows + 4 * stride_bytes, stride_bytes, second);
    for (size_t k = 0; k < 4; ++k) {
      const auto a = reinterpret_cast<Octet>(first[k]);
      const auto b = reinterpret_cast<Octet>(second[k]);
      std::byte* even = dst + 2 * k * kRows * kSize;
      store(even, __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
      store(even + kRows * kSize, __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
    }
  }
};

// Rows a power of two apart share a few places of the first-level cache, so a cache line of few rows is read to its
// end before the next rows' turn.
constexpr size_t kLineBytes = 64;

template <class Element>
void interleave(const std::byte* rows, size_t stride_bytes, size_t n_elements, std::byte* dst) {
  constexpr size_t kSize = Element::kSize;
  constexpr size_t kStep = Element::kStep;
  constexpr size_t kLine = kLineBytes / kSize;
  const auto weave = [&](size_t row, size_t i) {
    Element::weave(rows + row * stride_bytes + i * kSize, stride_bytes, dst + (i * kRows + row) * kSize);
  };
  size_t i = 0;
  for (; i + kLine <= n_elements; i += kLine) {
    for (size_t row = 0; row < kRows; row += kStep) {
      for (size_t k = i; k < i + kLine; k += kStep) weave(row, k);
    }
  }
  for (; i + kStep <= n_elements; i += kStep) {
    for (size_t row = 0; row < kRows; row += kStep) weave(row, i);
  }
  for (; i < n_elements; ++i) {
    for (size_t row = 0; row < kRows; ++row) {
      std::memcpy(dst + (i * kRows + row) * kSize, rows + row * stride_bytes + i * kSize, kSize);
    }
  }
}

}  // namespace

void interleave_words(const std::byte* rows, size_t stride_bytes, size_t n_elements, std::byte* dst) {
  interleave<Words>(rows, stride_bytes, n_elements, dst);
}

void interleave_halves(const std::byte* rows, size_t stride_bytes, size_t n_elements, std::byte* dst) {
  interleave<Halves>(rows, stride_bytes, n_elements, dst);
}

}  // namespace candor::kernels
