#pragma once
// Lookup by name without hashing: positions of a list, sorted by name. Finds duplicates and entries in n log n,
// whatever names a file holds.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace candor::formats {

// name_of(item) -> std::string_view. Equal names stay in list order.
template <class T, class NameOf>
std::vector<uint32_t> order_by_name(std::span<const T> items, NameOf name_of) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return name_of(items[a]) < name_of(items[b]); });
  return order;
}

// The position of the second of two equal names.
template <class T, class NameOf>
std::optional<size_t> first_duplicate(std::span<const T> items, std::span<const uint32_t> order, NameOf name_of) {
  for (size_t i = 1; i < order.size(); ++i) {
    if (name_of(items[order[i - 1]]) == name_of(items[order[i]])) return order[i];
  }
  return std::nullopt;
}

// nullptr when no item has the name.
template <class T, class NameOf>
const T* find_by_name(std::span<const T> items, std::span<const uint32_t> order, std::string_view name,
                      NameOf name_of) {
  const auto at = std::lower_bound(order.begin(), order.end(), name, [&](uint32_t position, std::string_view wanted) {
    return name_of(items[position]) < wanted;
  });
  if (at == order.end() || name_of(items[*at]) != name) return nullptr;
  return &items[*at];
}

}  // namespace candor::formats
