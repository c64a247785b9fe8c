#pragma once
// A list of metadata entries (key and value) under construction, for formats whose files do not hold the strings in the
// form that GGUF's keys need. Owns the strings; views stay valid while the list lives, also when it is moved.

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/model_file.h"

namespace candor::formats {

class MetaList {
 public:
  void add(std::string key, MetaValue value) {
    for (MetaEntry& entry : entries_) {
      if (entry.key != key) continue;
      entry.value = std::move(value);
      return;
    }
    entries_.push_back({std::move(key), std::move(value)});
  }
  void add_string(std::string key, std::string value) { add(std::move(key), keep(std::move(value))); }
  void add_strings(std::string key, std::vector<std::string> values) {
    std::vector<std::string_view> views;
    views.reserve(values.size());
    for (std::string& value : values) views.push_back(keep(std::move(value)));
    add(std::move(key), MetaArray(std::move(views)));
  }

  const std::vector<MetaEntry>& entries() const { return entries_; }
  const MetaValue* find(std::string_view key) const {
    for (const MetaEntry& entry : entries_) {
      if (entry.key == key) return &entry.value;
    }
    return nullptr;
  }

 private:
  std::string_view keep(std::string text) { return strings_.emplace_back(std::move(text)); }

  std::deque<std::string> strings_;
  std::vector<MetaEntry> entries_;
};

}  // namespace candor::formats
