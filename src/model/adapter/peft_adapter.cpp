#include "model/adapter/peft_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_delta.h"
#include "model/hub/hub_rows.h"
#include "tensor/dtype.h"

namespace candor::model {

namespace fs = std::filesystem;
using formats::in_quotes;
using formats::safetensors::SafetensorsFile;

namespace {

constexpr size_t kMaxPeftConfigBytes = size_t{1} << 20;
constexpr std::string_view kModel = "base_model.model.";

bool take_end(std::string_view& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.remove_suffix(end.size());
  return true;
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// The number behind "layers." or the like: the first piece of the name that is one.
std::optional<int32_t> block_in(std::string_view module) {
  for (size_t at = 0; at < module.size();) {
    const size_t end = std::min(module.find('.', at), module.size());
    int32_t block = 0;
    const auto parsed = std::from_chars(module.data() + at, module.data() + end, block);
    if (parsed.ec == std::errc() && parsed.ptr == module.data() + end) return block;
    at = end + 1;
  }
  return std::nullopt;
}

// Names of a text model inside a multimodal one, of one that was saved alone, or under another stem than its files
// have.
std::vector<std::string> other_names(std::string_view module, const HubForm& form) {
  std::vector<std::string> names = {std::string(module)};
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"model.language_model.", "model."},
                                 {"language_model.model.", "model."},
                                 {"language_model.", ""}}) {
    if (module.starts_with(from)) names.push_back(std::string(to).append(module.substr(from.size())));
  }
  const std::string_view first = form.tensors.front().hub;
  const std::string stem(first.substr(0, first.find('.') + 1));
  names.push_back(stem + std::string(module));
  names.push_back(stem + std::string(module.substr(module.find('.') + 1)));
  return names;
}

}  // namespace

std::string PeftReader::named(std::string_view name) const {
  return fmt::format("adapter {}: {}", in_quotes(folder_.string()), in_quotes(name));
}

Result<std::unique_ptr<AdapterFile>> PeftReader::read() {
  file_ = std::make_unique<AdapterFile>();
  file_->format_ = "PEFT";
  const fs::path config_path = folder_ / "adapter_config.json";
  CANDOR_ASSIGN(const nlohmann::json config, formats::read_json_file(config_path, kMaxPeftConfigBytes));
  CANDOR_ASSIGN(config_, read_peft_config(config, in_quotes(config_path.string())));
  CANDOR_TRY(open_weights());
  for (const SafetensorsFile& shard : file_->shards_) {
    for (const TensorView& tensor : shard.tensors()) CANDOR_TRY(sort_tensor(tensor));
  }
  if (modules_.empty()) return list_.refused("adapter_model.safetensors", "holds no matrices");
  choose_form();
  for (const auto& [name, module] : modules_) CANDOR_TRY(read_module(name, module));
  file_->parts_ = list_.take();
  return std::move(file_);
}

Result<void> PeftReader::open_weights() {
  const fs::path path = folder_ / "adapter_model.safetensors";
  std::error_code ignored;
  if (!fs::exists(path, ignored) && fs::exists(folder_ / "adapter_model.bin", ignored)) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: is a Python pickle: unpickling can run code, so it is refused; save the adapter as "
                            "safetensors",
                            in_quotes((folder_ / "adapter_model.bin").string())),
                "adapters");
  }
  CANDOR_ASSIGN(SafetensorsFile shard, SafetensorsFile::open(path));
  file_->n_bytes_ = shard.n_bytes();
  file_->shards_.push_back(std::move(shard));
  return {};
}

Result<void> PeftReader::sort_tensor(const TensorView& tensor) {
  std::string_view name = tensor.name;
  if (name.starts_with(kModel)) name.remove_prefix(kModel.size());
  if (!is_float(tensor.dtype)) {
    return list_.refused(tensor.name,
                         fmt::format("is of type {}; expected F32, F16 or BF16", dtype_info(tensor.dtype).name));
  }
  const TensorView* Module::*part = nullptr;
  if (take_end(name, ".lora_A.weight"))
    part = &Module::down;
  else if (take_end(name, ".lora_B.weight"))
    part = &Module::up;
  else if (take_end(name, ".lora_embedding_A"))
    part = &Module::table_down;
  else if (take_end(name, ".lora_embedding_B"))
    part = &Module::table_up;
  else if (take_end(name, ".lora_magnitude_vector") || take_end(name, ".lora_magnitude_vector.weight"))
    part = &Module::magnitudes;
  else if (take_end(name, ".base_layer.weight"))
    part = &Module::base;
  else if (take_end(name, ".modules_to_save.weight") || take_end(name, ".weight"))
    part = &Module::whole;
  if (part == nullptr) return list_.refused(tensor.name, "is not known: expected lora_A, lora_B and the like");
  Module& module = modules_[std::string(name)];
  if (module.*part != nullptr) return list_.refused(tensor.name, "is there twice");
  module.*part = &tensor;
  return {};
}

std::optional<PeftReader::Place> PeftReader::place_in(const HubForm& form, std::string_view module) const {
  for (const std::string& name : other_names(module, form)) {
    for (const HubTensor& row : form.tensors) {
      if (row.hub.empty()) continue;
      if (std::optional<Match> match = match_name(row.hub, name + ".weight")) return Place{&row, std::move(*match)};
    }
  }
  return std::nullopt;
}

// Of a GGUF file the one that knows most modules, the first of several; of forms that a model like it is written in.
void PeftReader::choose_form() {
  if (form_ != nullptr) return;
  int64_t most = -1;
  for (const HubForm& form : family_.hub) {
    if (form.suits != nullptr && !form.suits(spec_)) continue;
    const auto n =
        std::ranges::count_if(modules_, [&](const auto& each) { return place_in(form, each.first).has_value(); });
    if (n <= most) continue;
    most = n;
    form_ = &form;
  }
}

Result<void> PeftReader::read_module(const std::string& name, const Module& module) {
  const bool is_expert_stack = name.ends_with(".experts") || name.ends_with(".experts.base_layer");
  if (is_expert_stack && module.down != nullptr && module.up != nullptr) return add_experts(name, module);
  CANDOR_ASSIGN(AdapterPart part, part_of(name, module));
  const std::optional<Place> place = form_ == nullptr ? std::nullopt : place_in(*form_, name);
  if (!place) {
    return list_.refused(name, fmt::format("is not in this {} model: the adapter is for another model", family_.name));
  }
  return add_changed(*place, std::move(part));
}

Result<AdapterPart> PeftReader::part_of(const std::string& name, const Module& module) {
  AdapterPart part{.name = name};
  const bool has_pair = module.down != nullptr || module.up != nullptr;
  const bool has_table = module.table_down != nullptr || module.table_up != nullptr;
  if (module.whole != nullptr) {
    if (has_pair || has_table) return list_.refused(name, "has thin matrices beside a whole one; expected one of them");
    part.up = *module.whole;
    return part;
  }
  const TensorView* down = has_table ? module.table_down : module.down;
  const TensorView* up = has_table ? module.table_up : module.up;
  if (down == nullptr || up == nullptr || (has_pair && has_table)) {
    return list_.refused(name, "lacks one of lora_A and lora_B");
  }
  part.down = *down;
  part.up = *up;
  if (module.base != nullptr) part.base = *module.base;
  if (up->shape.n_dims != 2 || down->shape.n_dims != 2 || up->shape[1] < 1) {
    return list_.refused(name, fmt::format("has matrices {} and {}; expected a rank from 1 to {}",
                                           to_string(down->shape), to_string(up->shape), kMaxAdapterRank));
  }
  part.scale = config_.scale_of(name, up->shape[1]);
  if (has_table) {
    part.down = new_tensor(*down, {2, {down->shape[1], down->shape[0]}});
    transpose_elements(down->data, static_cast<size_t>(down->shape[0]), static_cast<size_t>(down->shape[1]),
                       static_cast<size_t>(dtype_info(down->dtype).block_bytes), bytes_of(part.down));
  }
  if (config_.has_gains != (module.magnitudes != nullptr)) {
    return list_.refused(name, config_.has_gains ? "has no lora_magnitude_vector, and \"use_dora\" is true"
                                                 : "has a lora_magnitude_vector, and \"use_dora\" is not true");
  }
  if (module.magnitudes == nullptr) return part;
  if (has_table) return list_.refused(name, "is an embedding with magnitudes (DoRA), which is not supported");
  if (module.magnitudes->shape.n_elements() != up->shape[0]) {
    return list_.refused(
        name, fmt::format("has magnitudes {} for {} outputs", to_string(module.magnitudes->shape), up->shape[0]));
  }
  part.magnitudes.resize(static_cast<size_t>(up->shape[0]));
  decode_elements(module.magnitudes->dtype, module.magnitudes->data, up->shape[0], part.magnitudes.data());
  return part;
}

TensorView PeftReader::new_tensor(const TensorView& like, const Shape& shape) {
  const auto unit = static_cast<size_t>(dtype_info(like.dtype).block_bytes);
  std::vector<std::byte>& bytes = file_->copies_.emplace_back(static_cast<size_t>(shape.n_elements()) * unit);
  return {like.name, like.dtype, shape, bytes.data(), bytes.size()};
}

// What the checkpoint's tensor goes through to become GGUF's, done to the side of its outputs or inputs.
Result<void> PeftReader::add_changed(const Place& place, AdapterPart part) {
  const HubChange change = place.row->change;
  const backend::AttnSpec& attn = spec_.blocks.front().attn;
  const std::string name = part.name;
  if (has_two_halves(change)) {
    const bool is_query = place.row->hub.find("q_proj") != std::string_view::npos;
    CANDOR_TRY(reorder(part, {change, is_query ? attn.n_heads : attn.n_kv_heads, 2}, name));
  } else if (change == HubChange::kSplitQuarters) {
    CANDOR_TRY(reorder(part, {change, 4, 3}, name));
  } else if (moves_rows(change)) {
    CANDOR_TRY(reorder(part, {change, attn.n_kv_heads, attn.n_heads / std::max(1, attn.n_kv_heads) + 2}, name));
  } else if (is_of_delta(change) || change == HubChange::kSplitMixed) {
    return tile(place, std::move(part));
  } else if (change == HubChange::kSplitRows) {
    const int64_t half = part.up.shape[0] / 2;
    AdapterPart second = part;
    second.up = rows_of(part.up, half, half);
    part.up = rows_of(part.up, 0, half);
    if (!part.magnitudes.empty()) {
      second.magnitudes.assign(part.magnitudes.begin() + half, part.magnitudes.end());
      part.magnitudes.resize(static_cast<size_t>(half));
    }
    CANDOR_TRY(list_.add(fill_name((place.row + 1)->name, place.match), std::nullopt, std::move(second)));
  } else if (change == HubChange::kSplitLatent) {
    return list_.refused(name,
                         "belongs to keys and values that are never made out of their latent here, so nothing can "
                         "be added to it: merge the adapter into the model with other tools");
  } else if (change != HubChange::kNone && change != HubChange::kTranspose && change != HubChange::kWiden) {
    return list_.refused(name,
                         "is a weight that this family's files hold in another form: merge the adapter into the "
                         "model with other tools");
  }
  if (place.match.expert.empty())
    return list_.add(fill_name(place.row->name, place.match), std::nullopt, std::move(part));
  std::string stack(place.row->name);
  stack.replace(stack.find(".#"), 2, "_exps");
  return list_.add(fill_name(stack, place.match), std::stoi(place.match.expert), std::move(part));
}

Result<void> PeftReader::reorder(AdapterPart& part, const RowOrder& order, std::string_view name) {
  RowOrder sized = order;
  if (order.heads < 1 || part.up.shape[0] % (order.heads * order.parts) != 0) {
    return list_.refused(name,
                         fmt::format("has {} outputs; expected rows of {} heads: the adapter is for another model",
                                     part.up.shape[0], order.heads));
  }
  sized.size = part.up.shape[0] / (order.heads * order.parts);
  const TensorView up = part.up;
  part.up = new_tensor(up, up.shape);
  rows_to_here(up.data, sized, up.row_bytes(), bytes_of(part.up));
  if (part.magnitudes.empty()) return {};
  std::vector<float> magnitudes(part.magnitudes.size());
  rows_to_here(reinterpret_cast<const std::byte*>(part.magnitudes.data()), sized, sizeof(float),
               reinterpret_cast<std::byte*>(magnitudes.data()));
  part.magnitudes = std::move(magnitudes);
  return {};
}

// Of linear attention's value heads.
Result<void> PeftReader::tile(const Place& place, AdapterPart part) {
  const auto has_delta = [](const BlockSpec& block) { return block.has_delta(); };
  const auto block = std::ranges::find_if(spec_.blocks, has_delta);
  if (block == spec_.blocks.end() || part.is_whole() || !part.magnitudes.empty()) {
    return list_.refused(part.name, "belongs to linear attention; expected thin matrices without magnitudes there");
  }
  const backend::DeltaSpec& delta = block->delta;
  if (place.row->change == HubChange::kSplitMixed) {
    CANDOR_ASSIGN(const MixedRows rows, mixed_rows(part.up, delta.n_k_heads, delta.k_dim, delta.v_width()));
    AdapterPart gate = part;
    const TensorView mixed = part.up;
    part.up = new_tensor(mixed, {2, {rows.n_qkv(), mixed.shape[1]}});
    gate.up = new_tensor(mixed, {2, {rows.n_gate(), mixed.shape[1]}});
    split_mixed(mixed.data, rows, bytes_of(part.up), bytes_of(gate.up));
    CANDOR_TRY(list_.add(fill_name((place.row + 1)->name, place.match), std::nullopt, std::move(gate)));
    return list_.add(fill_name(place.row->name, place.match), std::nullopt, std::move(part));
  }
  TensorView& side = place.row->change == HubChange::kTileColumns ? part.down : part.up;
  const ValueHeads heads = heads_of(place.row->change, {delta.n_k_heads, delta.n_v_heads});
  CANDOR_ASSIGN(const HeadPieces pieces, head_pieces(side, place.row->change, heads, delta.v_width()));
  const TensorView there = side;
  side = new_tensor(there, there.shape);
  to_turns(there.data, pieces, heads, bytes_of(side));
  return list_.add(fill_name(place.row->name, place.match), std::nullopt, std::move(part));
}

// Of two tensors of all experts the adapter's inner part is gate_up_proj's, the outer one down_proj's; of one, the one
// that adapter_config.json names.
Result<void> PeftReader::add_experts(const std::string& name, const Module& module) {
  constexpr std::string_view kInner = ".base_layer";
  const std::optional<int32_t> layer = block_in(name);
  if (!layer || *layer < 0 || static_cast<size_t>(*layer) >= spec_.blocks.size()) {
    return list_.refused(name, "is of no block of this model: the adapter is for another model");
  }
  if (name.ends_with(kInner)) return add_expert_matrix(name, module, false, *layer);
  if (modules_.contains(name + std::string(kInner))) return add_expert_matrix(name, module, true, *layer);
  const auto names_down = [](const std::string& each) { return each.ends_with("down_proj"); };
  return add_expert_matrix(name, module, std::ranges::any_of(config_.parameters, names_down), *layer);
}

// Whether outputs of gate and up take turns, rather than being one half each.
bool PeftReader::alternates(std::string_view parameter) const {
  if (form_ == nullptr) return false;
  const auto is_it = [&](const HubExperts& row) { return row.hub.ends_with(parameter) && row.n_parts() == 2; };
  const auto row = std::ranges::find_if(form_->experts, is_it);
  return row != form_->experts.end() && !row->are_halves;
}

Result<void> PeftReader::add_expert_matrix(const std::string& name, const Module& module, bool is_down, int32_t layer) {
  const int64_t n_experts = spec_.blocks[static_cast<size_t>(layer)].ffn.moe.n_experts;
  const TensorView& down = *module.down;
  const TensorView& up = *module.up;
  if (n_experts < 1 || down.shape.n_dims != 2 || up.shape.n_dims != 2 || down.shape[0] != up.shape[1] ||
      up.shape[1] % n_experts != 0 || up.shape[1] < 1 || (!is_down && up.shape[0] % 2 != 0)) {
    return list_.refused(name, fmt::format("has matrices {} and {}; expected those of {} experts",
                                           to_string(down.shape), to_string(up.shape), n_experts));
  }
  const int64_t rank = up.shape[1] / n_experts, n_out = up.shape[0];
  const auto unit = static_cast<size_t>(dtype_info(up.dtype).block_bytes);
  // Rows [first, first + step, ...) of one expert's columns, which are every n_experts-th.
  const auto up_of = [&](int64_t expert, int64_t first, int64_t step, int64_t n) {
    const TensorView made = new_tensor(up, {2, {n, rank}});
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t k = 0; k < rank; ++k) {
        const std::byte* from = up.row(first + row * step) + static_cast<size_t>(k * n_experts + expert) * unit;
        std::memcpy(bytes_of(made) + static_cast<size_t>(row * rank + k) * unit, from, unit);
      }
    }
    return made;
  };
  for (int32_t expert = 0; expert < n_experts; ++expert) {
    AdapterPart part{.down = rows_of(down, expert * rank, rank), .name = name};
    part.scale = config_.scale_of(name, rank);
    const auto add = [&](std::string_view tensor, TensorView made) {
      AdapterPart mine = part;
      mine.up = made;
      return list_.add(fmt::format("blk.{}.{}_exps.weight", layer, tensor), expert, std::move(mine));
    };
    if (is_down) {
      CANDOR_TRY(add("ffn_down", up_of(expert, 0, 1, n_out)));
      continue;
    }
    const bool turns = alternates("gate_up_proj");
    CANDOR_TRY(add("ffn_gate", up_of(expert, 0, turns ? 2 : 1, n_out / 2)));
    CANDOR_TRY(add("ffn_up", up_of(expert, turns ? 1 : n_out / 2, turns ? 2 : 1, n_out / 2)));
  }
  return {};
}

}  // namespace candor::model
