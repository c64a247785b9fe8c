#pragma once
// A model file that lives in a test: metadata only. Strings are owned by the object.

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "formats/model_file.h"

namespace candor::testing {

class MemoryModelFile final : public formats::ModelFile {
 public:
  const formats::FileInfo& info() const override { return info_; }
  std::span<const formats::MetaEntry> metadata() const override { return entries_; }
  std::span<const TensorView> tensors() const override { return {}; }
  const formats::MetaValue* meta(std::string_view key) const override {
    for (const formats::MetaEntry& entry : entries_) {
      if (entry.key == key) return &entry.value;
    }
    return nullptr;
  }
  const TensorView* find(std::string_view) const override { return nullptr; }

  // Sets or replaces a key.
  void set(const std::string& key, formats::MetaValue value) {
    erase(key);
    entries_.push_back({key, std::move(value)});
  }
  void set_string(const std::string& key, std::string value) { set(key, std::string_view(keep(std::move(value)))); }
  void set_strings(const std::string& key, const std::vector<std::string>& values) {
    std::vector<std::string_view> views;
    for (const std::string& value : values) views.push_back(keep(value));
    set(key, formats::MetaArray(std::move(views)));
  }
  void set_ints(const std::string& key, std::vector<int64_t> values) {
    set(key, formats::MetaArray(std::move(values)));
  }
  void set_floats(const std::string& key, std::vector<double> values) {
    set(key, formats::MetaArray(std::move(values)));
  }
  void erase(const std::string& key) {
    std::erase_if(entries_, [&](const formats::MetaEntry& entry) { return entry.key == key; });
  }

 private:
  const std::string& keep(std::string value) { return strings_.emplace_back(std::move(value)); }

  formats::FileInfo info_;
  std::vector<formats::MetaEntry> entries_;
  std::deque<std::string> strings_;
};

}  // namespace candor::testing
