#include "model/adapter/gguf_adapter.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "formats/quote.h"
#include "model/adapter/part_list.h"

namespace candor::model {
namespace {

using formats::in_quotes;

constexpr std::string_view kDownEnd = ".lora_a", kUpEnd = ".lora_b";

Result<void> add_experts(PartList& list, std::string_view name, const AdapterPart& all, int64_t n_experts) {
  if (all.down.shape.n_dims != 3 || all.up.shape.n_dims != 3 || all.down.shape[0] != n_experts ||
      all.up.shape[0] != n_experts) {
    return list.refused(name, fmt::format("has matrices {} and {}; expected those of {} experts",
                                          to_string(all.down.shape), to_string(all.up.shape), n_experts));
  }
  for (int32_t expert = 0; expert < n_experts; ++expert) {
    AdapterPart part = all;
    part.down = matrix_of(all.down, expert);
    part.up = matrix_of(all.up, expert);
    CANDOR_TRY(list.add(name, expert, std::move(part)));
  }
  return {};
}

}  // namespace

Result<void> GgufAdapterReader::check_metadata() {
  const auto text = [&](std::string_view key) -> Result<std::string> {
    CANDOR_ASSIGN(const auto value, formats::meta_string(*file_->gguf_, key));
    return std::string(value.value_or(""));
  };
  const auto refuse = [&](std::string_view key, std::string_view seen, std::string_view expected) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("adapter {}: metadata key \"{}\" is {}; expected {}", in_quotes(path_.string()), key,
                            in_quotes(seen), expected),
                "adapters");
  };
  CANDOR_ASSIGN(const std::string type, text("general.type"));
  if (type != "adapter") return refuse("general.type", type, "'adapter'");
  CANDOR_ASSIGN(const std::string kind, text("adapter.type"));
  if (kind != "lora") return refuse("adapter.type", kind, "'lora'");
  CANDOR_ASSIGN(const std::string family, text("general.architecture"));
  if (family != spec_.family) return refuse("general.architecture", family, "this model's, " + in_quotes(spec_.family));
  if (file_->gguf_->meta("adapter.alora.invocation_tokens") != nullptr) {
    return refuse("adapter.alora.invocation_tokens", "there", "none: an adapter is used for all of a text");
  }
  CANDOR_ASSIGN(const auto alpha, formats::meta_float(*file_->gguf_, "adapter.lora.alpha"));
  alpha_ = alpha.value_or(0.0);
  CANDOR_ASSIGN(file_->prompt_, text("adapter.lora.prompt_prefix"));
  return {};
}

Result<void> GgufAdapterReader::read_parts() {
  PartList list(spec_, family_, path_);
  for (const TensorView& up : file_->gguf_->tensors()) {
    if (up.name.ends_with(kDownEnd)) {
      const std::string other = std::string(up.name.substr(0, up.name.size() - kDownEnd.size())).append(kUpEnd);
      if (file_->gguf_->find(other) == nullptr) return list.refused(up.name, "has no " + other + " beside it");
      continue;
    }
    if (!up.name.ends_with(kUpEnd)) return list.refused(up.name, "is neither a .lora_a nor a .lora_b");
    const std::string_view name = up.name.substr(0, up.name.size() - kUpEnd.size());
    const TensorView* down = file_->gguf_->find(std::string(name).append(kDownEnd));
    if (down == nullptr) return list.refused(up.name, fmt::format("has no {}{} beside it", name, kDownEnd));
    AdapterPart part{.down = *down, .up = up, .name = std::string(name)};
    const int64_t rank = up.shape.row_elements();
    if (alpha_ != 0.0 && rank > 0) part.scale = static_cast<float>(alpha_ / static_cast<double>(rank));
    if (name.find("_exps") != std::string_view::npos) {
      CANDOR_TRY(add_experts(list, name, part, spec_.blocks.back().ffn.moe.n_experts));
    } else {
      CANDOR_TRY(list.add(name, std::nullopt, std::move(part)));
    }
  }
  file_->parts_ = list.take();
  return {};
}

Result<std::unique_ptr<AdapterFile>> GgufAdapterReader::read() {
  file_ = std::make_unique<AdapterFile>();
  CANDOR_ASSIGN(file_->gguf_, formats::open_model_file(path_));
  file_->format_ = file_->gguf_->info().format;
  file_->n_bytes_ = file_->gguf_->info().n_bytes;
  CANDOR_TRY(check_metadata());
  CANDOR_TRY(read_parts());
  return std::move(file_);
}

}  // namespace candor::model
