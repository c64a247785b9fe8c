#pragma once
// A model file that was never on disk: metadata and tensors put together by a test. Owns everything that it shows.

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_file.h"

namespace candor::testing {

class MemoryModelFile final : public formats::ModelFile {
 public:
  MemoryModelFile() { info_.format = "memory"; }

  // As if it was read from a file of that format.
  void set_format(std::string format) { info_.format = std::move(format); }

  // Adds the key, or replaces its value. A string must outlive the file (literals do) or come from keep().
  void set(std::string key, formats::MetaValue value) {
    erase(key);
    metadata_.push_back({std::move(key), std::move(value)});
  }
  void set_string(std::string key, std::string value) { set(std::move(key), keep(std::move(value))); }
  void set_strings(std::string key, const std::vector<std::string>& values) {
    std::vector<std::string_view> views;
    for (const std::string& value : values) views.push_back(keep(value));
    set(std::move(key), formats::MetaArray(std::move(views)));
  }
  void set_ints(std::string key, std::vector<int64_t> values) {
    set(std::move(key), formats::MetaArray(std::move(values)));
  }
  void set_floats(std::string key, std::vector<double> values) {
    set(std::move(key), formats::MetaArray(std::move(values)));
  }
  void erase(std::string_view key) {
    std::erase_if(metadata_, [&](const formats::MetaEntry& entry) { return entry.key == key; });
  }
  std::string_view keep(std::string text) { return strings_.emplace_back(std::move(text)); }

  // data: as many bytes as the shape takes in that dtype.
  void add_tensor(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> data) {
    const std::vector<std::byte>& kept = contents_.emplace_back(std::move(data));
    tensors_.push_back({keep(name), dtype, shape, kept.data(), kept.size()});
    info_.n_bytes += kept.size();
  }
  void remove_tensor(std::string_view name) {
    std::erase_if(tensors_, [&](const TensorView& tensor) { return tensor.name == name; });
  }

  const formats::FileInfo& info() const override { return info_; }
  std::span<const formats::MetaEntry> metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override {
    const auto entry = std::ranges::find(metadata_, key, &formats::MetaEntry::key);
    return entry == metadata_.end() ? nullptr : &entry->value;
  }
  const TensorView* find(std::string_view name) const override {
    const auto tensor = std::ranges::find(tensors_, name, &TensorView::name);
    return tensor == tensors_.end() ? nullptr : &*tensor;
  }

 private:
  formats::FileInfo info_;
  std::vector<formats::MetaEntry> metadata_;
  std::vector<TensorView> tensors_;
  std::deque<std::string> strings_;              // stable addresses
  std::deque<std::vector<std::byte>> contents_;  // stable addresses
};

}  // namespace candor::testing
