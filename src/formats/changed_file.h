#pragma once
// A model file over another one: all that it says, and tensors of which some are others. Who derives from it fills
// tensors_, with bytes of the base or of copies_, and then calls sort().

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "formats/name_order.h"
#include "formats/tensor_copies.h"
#include "tensor/tensor_view.h"

namespace candor::formats {

class ChangedFile : public ModelFile {
 public:
  const FileInfo& info() const override { return base_->info(); }
  std::span<const MetaEntry> metadata() const override { return base_->metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const MetaValue* meta(std::string_view key) const override { return base_->meta(key); }
  const TensorView* find(std::string_view name) const override {
    return find_by_name(std::span<const TensorView>(tensors_), order_, name, &ChangedFile::name_of);
  }
  Result<void> check_intact() const override { return base_->check_intact(); }
  void will_read(std::span<const std::byte> part) const override {
    for (const std::span<const std::byte> bytes : copies_.read_for(part)) base_->will_read(bytes);
  }
  void has_read(std::span<const std::byte> part) const override {
    copies_.release(part);
    base_->has_read(part);
  }
  uint64_t copy_bytes() const override { return base_->copy_bytes() + copies_.n_bytes(); }
  Result<void> make_copy(std::span<const std::byte> part) const override {
    CANDOR_TRY(copies_.make(part));
    return base_->make_copy(part);
  }
  void drop_copies() override {
    copies_.drop();
    base_->drop_copies();
  }

 protected:
  explicit ChangedFile(std::unique_ptr<ModelFile> base) : base_(std::move(base)) {}

  const ModelFile& base() const { return *base_; }
  void sort() { order_ = order_by_name(std::span<const TensorView>(tensors_), &ChangedFile::name_of); }

  mutable TensorCopies copies_;
  std::vector<TensorView> tensors_;

 private:
  static std::string_view name_of(const TensorView& tensor) { return tensor.name; }

  std::unique_ptr<ModelFile> base_;
  std::vector<uint32_t> order_;  // of tensors_, by name
};

}  // namespace candor::formats
