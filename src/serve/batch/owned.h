#pragma once
// What a store keeps of several owners, by id: each owner sees its own alone. The caller holds the store's mutex.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace candor::serve {

// Newest first.
template <class T>
std::vector<T> owned_by(const std::string& owner, const std::map<std::string, T>& all) {
  std::vector<T> list;
  for (const auto& [id, one] : all) {
    if (one.owner == owner) list.push_back(one);
  }
  std::ranges::stable_sort(list, std::ranges::greater(), &T::created);
  return list;
}

// nullptr where the owner has none of that id.
template <class Map>
auto* find_owned(const std::string& owner, const std::string& id, Map& all) {
  const auto at = all.find(id);
  return at == all.end() || at->second.owner != owner ? nullptr : &at->second;
}

}  // namespace candor::serve
