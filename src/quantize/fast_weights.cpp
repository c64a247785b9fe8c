#include "quantize/fast_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::quantize {
namespace {

class FastFile final : public formats::ModelFile {
 public:
  explicit FastFile(std::unique_ptr<formats::ModelFile> source) : source_(std::move(source)) {
    const auto tensors = source_->tensors();
    tensors_.assign(tensors.begin(), tensors.end());
    for (TensorView& tensor : tensors_) {
      if (tensor.dtype == DType::kQ4_K && tensor.shape.n_dims >= 2) tensor.dtype = DType::kQ4_KFast;
    }
  }

  const formats::FileInfo& info() const override { return source_->info(); }
  std::span<const formats::MetaEntry> metadata() const override { return source_->metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override { return source_->meta(key); }
  const TensorView* find(std::string_view name) const override {
    const TensorView* tensor = source_->find(name);
    return tensor == nullptr ? nullptr : &tensors_[static_cast<size_t>(tensor - source_->tensors().data())];
  }
  Result<void> check_intact() const override { return source_->check_intact(); }
  void will_read(std::span<const std::byte> part) const override { source_->will_read(part); }
  void has_read(std::span<const std::byte> part) const override { source_->has_read(part); }
  uint64_t copy_bytes() const override { return source_->copy_bytes(); }
  Result<void> make_copy(std::span<const std::byte> part) const override { return source_->make_copy(part); }
  void drop_copies() override { source_->drop_copies(); }

 private:
  std::unique_ptr<formats::ModelFile> source_;
  std::vector<TensorView> tensors_;  // the source's, in its order
};

std::string types_of(const formats::ModelFile& file) {
  std::set<std::string_view> names;
  for (const TensorView& tensor : file.tensors()) names.insert(dtype_info(tensor.dtype).name);
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

Result<std::unique_ptr<formats::ModelFile>> read_fast(std::unique_ptr<formats::ModelFile> file) {
  std::unique_ptr<formats::ModelFile> fast = std::make_unique<FastFile>(std::move(file));
  if (n_fast_matrices(*fast) > 0) return fast;
  const auto& paths = fast->info().paths;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: nothing to rebase for fast weights (--fast-weights): no matrix is in Q4_K, the types "
                          "here are {}; leave it off, or encode while loading with --quantize q4_k_m",
                          paths.empty() ? std::string("the model") : paths.front().string(), types_of(*fast)));
}

int32_t n_fast_matrices(const formats::ModelFile& file) {
  return static_cast<int32_t>(
      std::ranges::count(file.tensors(), DType::kQ4_KFast, [](const TensorView& tensor) { return tensor.dtype; }));
}

}  // namespace candor::quantize
