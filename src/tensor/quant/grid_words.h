#pragma once
// The words of a grid's vectors (GridFormat::words), made from its entries (grid_entries.inl.h): for the table of the
// host and for those of other devices.

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/quant/grid.h"
#include "tensor/quant/grid_entries.inl.h"

namespace candor::quant {

// entries: numbers whose digits of `base` are the codes, the first weight's the least.
template <size_t n>
constexpr std::array<uint16_t, n> words_of(const uint16_t (&entries)[n], uint32_t base, int span) {
  std::array<uint16_t, n> words{};
  for (size_t i = 0; i < n; ++i) {
    uint32_t entry = entries[i];
    for (int k = 0; k < span; ++k, entry /= base) {
      words[i] = static_cast<uint16_t>(words[i] | ((entry % base) << code_place(span, k)));
    }
  }
  return words;
}

}  // namespace candor::quant
