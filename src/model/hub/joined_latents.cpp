#include "model/hub/joined_latents.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/name_order.h"
#include "formats/quote.h"
#include "formats/tensor_copies.h"
#include "model/hparams.h"
#include "model/hub/hub_latent.h"
#include "model/hub/made_tensor.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

constexpr std::string_view kJoinedEnd = ".attn_kv_b.weight";
constexpr std::string_view kKeys = ".attn_k_b.weight";
constexpr std::string_view kValues = ".attn_v_b.weight";

constexpr std::string_view latent_name_of(const TensorView& tensor) {
  return tensor.name;
}

bool is_joined(const TensorView& tensor) {
  return tensor.name.starts_with("blk.") && tensor.name.ends_with(kJoinedEnd);
}

std::string name_of_part(const TensorView& joined, std::string_view part) {
  return std::string(joined.name.substr(0, joined.name.size() - kJoinedEnd.size())) + std::string(part);
}

// Old files say the widths of expanded heads where new ones say those of the latent.
Result<LatentHeads> read_heads(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const std::optional<std::string_view> family, formats::meta_string(file, "general.architecture"));
  const Hparams hparams(file, family.value_or(""));
  const bool is_new = hparams.has("attention.key_length_mla");
  const Hparams::IntRange range{1, kMaxWidth};
  LatentHeads heads;
  CANDOR_ASSIGN(heads.n_heads, hparams.require_int("attention.head_count", range));
  CANDOR_ASSIGN(const int32_t key,
                hparams.require_int(is_new ? "attention.key_length_mla" : "attention.key_length", range));
  CANDOR_ASSIGN(heads.value_dim,
                hparams.require_int(is_new ? "attention.value_length_mla" : "attention.value_length", range));
  CANDOR_ASSIGN(heads.latent_dim, hparams.require_int("attention.kv_lora_rank", range));
  CANDOR_ASSIGN(const int32_t rotated, hparams.require_int("rope.dimension_count", range));
  heads.key_dim = key - rotated;
  return heads;
}

class SplitFile final : public formats::ModelFile {
 public:
  explicit SplitFile(std::unique_ptr<formats::ModelFile> source) : source_(std::move(source)) {}

  Result<void> split() {
    CANDOR_ASSIGN(heads_, read_heads(*source_));
    for (const TensorView& tensor : source_->tensors()) {
      if (!is_joined(tensor) || source_->find(name_of_part(tensor, kKeys)) != nullptr) {
        tensors_.push_back(tensor);
        continue;
      }
      CANDOR_TRY(check_joined(tensor, heads_));
      if (!dtype_info(tensor.dtype).is_weight) {
        return fail(ErrorKind::kUnsupported, "tensor " + formats::in_quotes(tensor.name) + ": type " +
                                                 std::string(dtype_info(tensor.dtype).name) +
                                                 " can't hold weights here");
      }
      CANDOR_TRY(add(tensor, kKeys, {{}, key_type_of(tensor.dtype), heads_.key_shape(), nullptr, 0}, write_keys));
      CANDOR_TRY(add(tensor, kValues, {{}, tensor.dtype, heads_.value_shape(), nullptr, 0}, write_values));
    }
    order_ = formats::order_by_name(std::span<const TensorView>(tensors_), latent_name_of);
    return source_->check_intact();
  }

  const formats::FileInfo& info() const override { return source_->info(); }
  std::span<const formats::MetaEntry> metadata() const override { return source_->metadata(); }
  std::span<const TensorView> tensors() const override { return tensors_; }
  const formats::MetaValue* meta(std::string_view key) const override { return source_->meta(key); }
  const TensorView* find(std::string_view name) const override {
    return formats::find_by_name(std::span<const TensorView>(tensors_), order_, name, latent_name_of);
  }
  Result<void> check_intact() const override { return source_->check_intact(); }
  void will_read(std::span<const std::byte> part) const override {
    for (const std::span<const std::byte> bytes : copies_.read_for(part)) source_->will_read(bytes);
  }
  void has_read(std::span<const std::byte> part) const override {
    copies_.release(part);
    source_->has_read(part);
  }
  uint64_t copy_bytes() const override { return source_->copy_bytes() + copies_.n_bytes(); }
  Result<void> make_copy(std::span<const std::byte> part) const override {
    CANDOR_TRY(copies_.make(part));
    return source_->make_copy(part);
  }
  void drop_copies() override {
    source_->drop_copies();
    copies_.drop();
  }

 private:
  Result<void> add(const TensorView& joined, std::string_view part, TensorView view, WriteLatent write) {
    const LatentHeads heads = heads_;
    view.name = names_.emplace_back(name_of_part(joined, part));
    view.n_bytes = static_cast<size_t>(view.shape[0] * view.shape[1]) * view.row_bytes();
    formats::CopySource source = source_from(
        joined, nullptr, [heads, write](const TensorView& from, std::byte* to) { write(from, heads, to); });
    CANDOR_ASSIGN(view.data, copies_.add(view.n_bytes, view.name, std::move(source)));
    tensors_.push_back(view);
    return {};
  }

  std::unique_ptr<formats::ModelFile> source_;
  LatentHeads heads_;
  mutable formats::TensorCopies copies_;
  std::deque<std::string> names_;
  std::vector<TensorView> tensors_;
  std::vector<uint32_t> order_;
};

}  // namespace

Result<std::unique_ptr<formats::ModelFile>> with_split_latents(std::unique_ptr<formats::ModelFile> file) {
  bool has_joined = false;
  for (const TensorView& tensor : file->tensors()) has_joined |= is_joined(tensor);
  if (!has_joined) return file;
  auto split = std::make_unique<SplitFile>(std::move(file));
  CANDOR_TRY(split->split());
  return std::unique_ptr<formats::ModelFile>(std::move(split));
}

}  // namespace candor::model
