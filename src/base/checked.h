#pragma once
// Arithmetic on numbers that came from outside. Sizes are compared with what remains before anything is allocated.

#include <concepts>
#include <optional>
#include <utility>

#include "base/error.h"

namespace candor {

// Empty on overflow.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// Empty on overflow.
template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Conversion of a value that our own invariants keep in range. REQUIRES: the value is representable.
template <std::integral To, std::integral From>
constexpr To checked_cast(From value) {
  CANDOR_CHECK(std::in_range<To>(value));
  return static_cast<To>(value);
}

// n rounded up to a multiple of step. REQUIRES: n >= 0, step > 0.
template <std::integral T>
constexpr T round_up(T n, T step) {
  return (n + step - 1) / step * step;
}

template <std::integral T>
constexpr T ceil_div(T n, T d) {
  return (n + d - 1) / d;
}

}  // namespace candor
