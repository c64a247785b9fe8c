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

#include "formats/changed_file.h"
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

class SplitFile final : public formats::ChangedFile {
 public:
  explicit SplitFile(std::unique_ptr<formats::ModelFile> source) : ChangedFile(std::move(source)) {}

  Result<void> split() {
    CANDOR_ASSIGN(heads_, read_heads(base()));
    for (const TensorView& tensor : base().tensors()) {
      if (!is_joined(tensor) || base().find(name_of_part(tensor, kKeys)) != nullptr) {
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
    sort();
    return base().check_intact();
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

  LatentHeads heads_;
  std::deque<std::string> names_;
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
