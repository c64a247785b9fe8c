#include "model/hub/hub_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/op_specs.h"
#include "backend/state_specs.h"
#include "formats/new_file.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_writer.h"
#include "formats/safetensors/tokenizer_json_writer.h"
#include "model/arch_spec.h"
#include "model/families/families.h"
#include "model/hub/hub_config_writer.h"
#include "model/hub/hub_delta.h"
#include "model/hub/hub_experts.h"
#include "model/hub/hub_form.h"
#include "model/hub/hub_latent.h"
#include "model/hub/hub_names.h"
#include "model/hub/hub_places.h"
#include "model/hub/hub_prediction.h"
#include "model/hub/hub_rows.h"
#include "model/hub/hub_state.h"
#include "model/model.h"
#include "tensor/encode.h"
#include "tensor/tensor_view.h"

namespace candor::model {

namespace fs = std::filesystem;
using formats::in_quotes;

namespace {

// What stands in one tensor of the folder, of experts that the file keeps in one or two.
using Join = std::vector<std::byte> (*)(std::span<const TensorView> parts, DType dtype, bool are_halves);

// One tensor of the folder: a tensor of the file, the part of one that belongs to one expert, or what is joined.
struct Item {
  TensorView view;  // of the file; `name` is the file's
  HubChange change = HubChange::kNone;
  formats::safetensors::NewTensor target;
  Join join = nullptr;
  std::vector<TensorView> joined{};  // view among them
  bool are_halves = false;
  size_t n_bytes() const {
    return static_cast<size_t>(target.shape.n_elements()) * static_cast<size_t>(dtype_info(target.dtype).block_bytes);
  }
};

// Items [begin, end) stand in one file.
struct Shard {
  size_t begin = 0;
  size_t end = 0;
  uint64_t n_bytes = 0;
};

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
// What the `transformers` library calls the type.
const char* torch_name(DType dtype) {
  return dtype == DType::kF32 ? "float32" : dtype == DType::kF16 ? "float16" : "bfloat16";
}

const std::byte* bytes_of(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

class HubWriter {
 public:
  HubWriter(const formats::ModelFile& file, const fs::path& folder, const HubWriteOptions& options)
      : file_(file), folder_(folder), options_(options) {}

  Result<formats::WriteReport> write() {
    CANDOR_ASSIGN(spec_, read_arch(file_));
    CANDOR_TRY(choose_form());
    CANDOR_ASSIGN(nlohmann::ordered_json config, write_hub_config(spec_, file_, *form_));
    CANDOR_ASSIGN(const auto tokenizer, formats::safetensors::write_tokenizer(file_));
    CANDOR_TRY(plan_tensors());
    plan_shards();
    config["torch_dtype"] = torch_name(matrix_dtype());
    if (std::ranges::any_of(items_, [](const Item& item) { return item.join == join_codes; })) {
      config["quantization_config"] = {{"quant_method", "mxfp4"}};
    }
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) return fail(ErrorKind::kIo, fmt::format("{}: {}", in_quotes(folder_.string()), error.message()));
    CANDOR_TRY(put("config.json", config));
    CANDOR_TRY(put("tokenizer.json", tokenizer.tokenizer));
    CANDOR_TRY(put("tokenizer_config.json", tokenizer.config));
    CANDOR_TRY(put("generation_config.json", tokenizer.generation));
    for (size_t i = 0; i < shards_.size(); ++i) CANDOR_TRY(write_shard(i));
    if (shards_.size() > 1) CANDOR_TRY(write_index());
    fs::remove(folder_ / (shards_.size() == 1 ? kIndex : kWeights), error);  // an older model's
    return report_;
  }

 private:
  Result<void> put(const char* name, const nlohmann::ordered_json& content) const {
    return formats::write_file(folder_ / name,
                               content.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  // The form that suits and has a place for every tensor; of several the last, where the model has a window.
  Result<void> choose_form() {
    const auto family = std::ranges::find(families(), spec_.family, &Family::name);
    if (family == families().end()) return fail(ErrorKind::kUnsupported, "no family of this name");
    family_ = &*family;
    const bool has_window =
        std::ranges::any_of(spec_.blocks, [](const BlockSpec& block) { return block.attn.window_tokens > 0; });
    std::string missing;
    for (const HubForm& form : family_->hub) {
      if (form.suits != nullptr && !form.suits(spec_)) continue;
      const auto homeless = std::ranges::find_if(file_.tensors(), [&](const TensorView& tensor) {
        return !is_known(tensor) && !place(tensor, form) && !expert_place(tensor, form);
      });
      if (homeless != file_.tensors().end()) {
        missing = homeless->name;
      } else if (form_ == nullptr || has_window) {
        form_ = &form;
      }
    }
    if (form_ != nullptr) return {};
    const std::string why = missing.empty() ? "every tensor" : "tensor " + in_quotes(missing);
    return fail(ErrorKind::kUnsupported,
                why + " has no name in a folder of family " + spec_.family + ": write RESULT.gguf");
  }

  // Tensors that config.json says in its own way.
  bool is_known(const TensorView& tensor) const {
    if (tensor.name == "position_embd.weight" && is_sinusoids(tensor)) return true;
    return std::ranges::any_of(family_->ignored, [&](std::string_view pattern) {
      return match_name(pattern, tensor.name) || pattern == tensor.name;
    });
  }

  static Error unwritable(const TensorView& tensor) {
    return fail(ErrorKind::kUnsupported, fmt::format("tensor {}: type {} can't be written as safetensors",
                                                     in_quotes(tensor.name), dtype_info(tensor.dtype).name));
  }

  // The tensors that stand in one on the hub, each of the shape of the first.
  Result<std::vector<TensorView>> parts_of(const ExpertPlace& place) const {
    std::vector<TensorView> parts;
    for (size_t part = 0; part < place.row->n_parts(); ++part) {
      const std::string name = fill_name(place.row->names[part], place.match) + (place.is_bias ? ".bias" : ".weight");
      const TensorView* tensor = file_.find(name);
      if (tensor == nullptr)
        return fail(ErrorKind::kInvalidInput, fmt::format("tensor {} is missing", in_quotes(name)));
      const int32_t n_dims = place.is_bias ? 2 : 3;
      if (!dtype_info(tensor->dtype).is_weight) return unwritable(*tensor);
      if (tensor->shape.n_dims != n_dims || tensor->n_bytes == 0 ||
          (part > 0 && tensor->shape != parts.front().shape)) {
        return fail(ErrorKind::kInvalidInput,
                    fmt::format("tensor {}: shape {}; expected {} dimensions, the same for all "
                                "that belong together",
                                in_quotes(name), to_string(tensor->shape), n_dims));
      }
      parts.push_back(*tensor);
    }
    return parts;
  }

  Result<void> add_joined(const ExpertPlace& place) {
    CANDOR_ASSIGN(const std::vector<TensorView> parts, parts_of(place));
    const TensorView& first = parts.front();
    const Shape& shape = first.shape;
    const int64_t n_out = shape[1] * static_cast<int64_t>(parts.size());
    const std::string name = fill_name(place.row->hub, place.match);
    const auto add = [&](std::string_view end, DType dtype, const Shape& joined, Join join) {
      items_.push_back(
          {first, HubChange::kNone, {name + std::string(end), dtype, joined}, join, parts, place.row->are_halves});
    };
    const bool is_packed = std::ranges::all_of(parts, [](const auto& part) { return part.dtype == DType::kMXFP4; });
    if (is_packed && !options_.dtype) {
      add(kBlocksEnd, DType::kI8, {4, {shape[0], n_out, shape[2] / 32, 16}}, join_codes);
      add(kScalesEnd, DType::kI8, {3, {shape[0], n_out, shape[2] / 32}}, join_scales);
      return {};
    }
    const DType dtype = options_.dtype ? *options_.dtype : is_float(first.dtype) ? first.dtype : DType::kF32;
    if (place.is_bias) {
      add(kBiasEnd, dtype, {2, {shape[0], n_out}}, join_biases);
    } else {
      add("", dtype, {3, {shape[0], shape[2], n_out}}, join_matrices);
    }
    return {};
  }

  Result<void> plan_tensors() {
    for (const TensorView& tensor : file_.tensors()) {
      if (const auto experts = expert_place(tensor, *form_)) {
        report_.source_bytes += tensor.n_bytes;
        report_.n_weights += tensor.shape.n_elements();
        if (experts->part == 0) CANDOR_TRY(add_joined(*experts));
        continue;
      }
      const HubTensor* row = place(tensor, *form_);
      if (row == nullptr) continue;
      if (makes_two(row->change)) {
        CANDOR_TRY(add_mixed(tensor, *row));
        continue;
      }
      if (!dtype_info(tensor.dtype).is_weight) return unwritable(tensor);
      report_.source_bytes += tensor.n_bytes;
      report_.n_weights += tensor.shape.n_elements();
      const auto pattern = expert_pattern(tensor.name);
      if (!pattern || match_name(row->name, tensor.name)) {
        add_item(tensor, *row, std::string(tensor.name));
        continue;
      }
      for (int64_t expert = 0; expert < tensor.shape[0]; ++expert) {
        TensorView part = tensor;
        part.shape = {2, {tensor.shape[1], tensor.shape[2]}};
        part.n_bytes = tensor.n_bytes / static_cast<size_t>(tensor.shape[0]);
        part.data = tensor.data + static_cast<size_t>(expert) * part.n_bytes;
        add_item(part, *row, fill_expert(*pattern, std::to_string(expert)));
      }
    }
    return {};
  }

  static Result<void> check_split(const TensorView& tensor, const Shape& expected) {
    if (tensor.shape == expected) return {};
    return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: shape {}; expected {}", in_quotes(tensor.name),
                                                      to_string(tensor.shape), to_string(expected)));
  }

  // The rows of qkv and of the gate, or of keys and values from a latent, as one tensor.
  Result<void> add_mixed(const TensorView& tensor, const HubTensor& row) {
    report_.source_bytes += tensor.n_bytes;
    report_.n_weights += tensor.shape.n_elements();
    if (row.hub.empty()) return {};
    if (!dtype_info(tensor.dtype).is_weight) return unwritable(tensor);
    const Match match = *match_name(row.name, tensor.name);
    const TensorView* gate = nullptr;
    if ((&row)[1].hub.empty()) gate = file_.find(fill_name((&row)[1].name, match));
    if (gate == nullptr || !dtype_info(gate->dtype).is_weight) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("tensor {}: the one that belongs to it is missing", in_quotes(tensor.name)));
    }
    if (row.change == HubChange::kSplitLatent) {
      CANDOR_TRY(check_split(tensor, latent_heads().key_shape()));
      CANDOR_TRY(check_split(*gate, latent_heads().value_shape()));
    }
    if (row.change == HubChange::kSplitRows) CANDOR_TRY(check_split(*gate, tensor.shape));
    if (tensor.shape.n_dims < 2) return check_split(tensor, {2, tensor.shape.dims});
    const DType dtype = options_.dtype ? *options_.dtype : is_float(tensor.dtype) ? tensor.dtype : DType::kF32;
    Item& item = items_.emplace_back();
    item.view = tensor;
    item.change = row.change;
    item.target.name = fill_name(row.hub, match);
    item.target.dtype = dtype;
    item.target.shape = joined_shape(row.change, tensor.shape, gate->shape);
    item.joined = {tensor, *gate};
    return {};
  }

  Shape joined_shape(HubChange change, const Shape& first, const Shape& second) const {
    if (change == HubChange::kSplitLatent) return latent_heads().joined_shape();
    Shape joined = first;
    const auto at_rows = static_cast<size_t>(first.n_dims - 2);
    joined.dims[at_rows] += second.dims[at_rows];
    return joined;
  }

  LatentHeads latent_heads() const {
    const BlockSpec& block = *std::ranges::find_if(spec_.blocks, &BlockSpec::has_latent);
    return {block.attn.n_heads, block.latent.head_dim, block.latent.value_dim, block.attn.latent_dim};
  }

  void join_parts(const Item& item, const float* first, const float* second, float* joined) const {
    const auto* one = reinterpret_cast<const std::byte*>(first);
    const auto* other = reinterpret_cast<const std::byte*>(second);
    auto* dst = reinterpret_cast<std::byte*>(joined);
    if (item.change == HubChange::kSplitRows) return join_halves(first, second, item.view.shape, joined);
    if (item.change == HubChange::kSplitLatent) return join_latent(one, other, latent_heads(), sizeof(float), dst);
    const backend::DeltaSpec delta = delta_of();
    const size_t row_bytes = static_cast<size_t>(item.view.shape[1]) * sizeof(float);
    join_mixed(one, other, {delta.n_k_heads, delta.k_dim, delta.v_width() / delta.n_k_heads, row_bytes}, dst);
  }

  std::vector<std::byte> mixed_bytes(const Item& item) const {
    std::vector<std::vector<float>> parts;
    for (const TensorView& part : item.joined) {
      parts.emplace_back(static_cast<size_t>(part.shape.n_elements()));
      decode_rows(part, parts.back().data());
    }
    std::vector<float> mixed(parts[0].size() + parts[1].size());
    join_parts(item, parts[0].data(), parts[1].data(), mixed.data());
    std::vector<std::byte> bytes(item.n_bytes());
    encode_elements(item.target.dtype, mixed.data(), static_cast<int64_t>(mixed.size()), bytes.data());
    return bytes;
  }

  backend::DeltaSpec delta_of() const {
    const auto recurrent = std::ranges::find_if(spec_.blocks, &BlockSpec::is_recurrent);
    return recurrent == spec_.blocks.end() ? backend::DeltaSpec{} : recurrent->delta;
  }

  void add_item(const TensorView& view, const HubTensor& row, const std::string& name) {
    const bool is_matrix = view.shape.n_dims >= 2;
    DType dtype = is_float(view.dtype) ? view.dtype : DType::kF32;
    if (options_.dtype && is_matrix) dtype = *options_.dtype;
    Shape shape = view.shape;
    if (row.change == HubChange::kTranspose) std::swap(shape.dims[0], shape.dims[1]);
    if (row.change == HubChange::kDropTwoRows) shape.dims[0] += 2;
    if (row.change == HubChange::kWidenRow) shape = {2, {1, view.shape.n_elements()}};
    if (are_taps(row.change)) shape = {3, {view.shape[0], 1, view.shape[1]}};
    if (is_of_state(row.change)) shape = state_shape_on_hub(row.change, shape);
    items_.push_back({view, row.change, {name_on_hub(row, name), dtype, shape}});
  }

  std::string name_on_hub(const HubTensor& row, const std::string& name) const {
    return name_apart(fill_name(row.hub, *match_name(row.name, name)), *form_, spec_.blocks.size());
  }

  DType matrix_dtype() const {
    const auto matrix = std::ranges::find_if(
        items_, [](const Item& item) { return item.view.shape.n_dims >= 2 && is_float(item.target.dtype); });
    return matrix == items_.end() ? DType::kF32 : matrix->target.dtype;
  }

  void plan_shards() {
    shards_.push_back({});
    for (size_t i = 0; i < items_.size(); ++i) {
      const size_t n_bytes = items_[i].n_bytes();
      const bool is_full = shards_.back().n_bytes > 0 && shards_.back().n_bytes + n_bytes > options_.max_shard_bytes;
      if (is_full) shards_.push_back({.begin = i});
      shards_.back().end = i + 1;
      shards_.back().n_bytes += n_bytes;
    }
  }

  std::string shard_name(size_t shard) const {
    if (shards_.size() == 1) return kWeights;
    return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards_.size());
  }

  Result<void> write_index() const {
    nlohmann::ordered_json places;
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      for (size_t i = shards_[shard].begin; i < shards_[shard].end; ++i) {
        places[items_[i].target.name] = shard_name(shard);
      }
    }
    return put(kIndex, {{"metadata", {{"total_size", report_.written_bytes}}}, {"weight_map", std::move(places)}});
  }

  Result<void> write_shard(size_t shard) {
    const std::span<const Item> items =
        std::span(items_).subspan(shards_[shard].begin, shards_[shard].end - shards_[shard].begin);
    std::vector<formats::safetensors::NewTensor> targets;
    for (const Item& item : items) targets.push_back(item.target);
    CANDOR_ASSIGN(auto writer, formats::safetensors::SafetensorsWriter::create(folder_ / shard_name(shard), targets));
    for (const Item& item : items) {
      const auto written = write_read_item(item, writer);
      CANDOR_TRY(file_.check_intact());
      CANDOR_TRY(written);
      report_.written_bytes += item.n_bytes();
      done_bytes_ += item.view.n_bytes;
      if (options_.progress && !options_.progress(done_bytes_, report_.source_bytes)) {
        return fail(ErrorKind::kCancelled, fmt::format("interrupted; {} is not complete", in_quotes(folder_.string())));
      }
    }
    return writer.finish();
  }

  Result<void> write_read_item(const Item& item, formats::safetensors::SafetensorsWriter& writer) const {
    std::vector<TensorView> views = item.joined;
    views.push_back(item.view);
    for (const TensorView& view : views) CANDOR_TRY(file_.make_copy(view.bytes()));
    CANDOR_TRY(write_item(item, writer));
    for (const TensorView& view : views) file_.has_read(view.bytes());
    return {};
  }

  Result<void> write_item(const Item& item, formats::safetensors::SafetensorsWriter& writer) const {
    if (!item.joined.empty() && item.join == nullptr) return writer.write_tensor(mixed_bytes(item));
    if (item.join != nullptr) return writer.write_tensor(item.join(item.joined, item.target.dtype, item.are_halves));
    const bool keeps_order = item.change == HubChange::kNone || item.change == HubChange::kWiden ||
                             item.change == HubChange::kWidenRow || item.change == HubChange::kScaled;
    if (keeps_order && item.target.dtype == item.view.dtype) return writer.write_tensor(item.view.bytes());
    std::vector<float> values(static_cast<size_t>(item.view.shape.n_elements()));
    decode_rows(item.view, values.data());
    if (!keeps_order) values = revert(item, values);
    std::vector<std::byte> bytes(item.n_bytes());
    encode_elements(item.target.dtype, values.data(), static_cast<int64_t>(values.size()), bytes.data());
    return writer.write_tensor(bytes);
  }

  std::vector<float> revert(const Item& item, const std::vector<float>& values) const {
    std::vector<float> result(values.size());
    if (item.change == HubChange::kAddOne) {
      std::ranges::transform(values, result.begin(), [](float x) { return x - 1.0f; });
      return result;
    }
    if (is_of_delta(item.change)) return revert_delta(item, values);
    if (is_of_state(item.change)) {
      result = values;
      revert_state(item.change, result.data(), static_cast<int64_t>(result.size()));
      return result;
    }
    const size_t n_rows = static_cast<size_t>(item.view.shape[0]);
    const size_t width = values.size() / n_rows;
    if (item.change == HubChange::kDropTwoRows) {
      result.insert(result.begin(), 2 * width, 0.0f);
      std::ranges::copy(values, result.begin() + static_cast<int64_t>(2 * width));
      return result;
    }
    if (item.change == HubChange::kSwapInputs) {
      swap_halves(bytes_of(values), n_rows, width * sizeof(float), reinterpret_cast<std::byte*>(result.data()));
      return result;
    }
    if (item.change == HubChange::kTranspose) {
      transpose_elements(bytes_of(values), n_rows, width, sizeof(float), reinterpret_cast<std::byte*>(result.data()));
      return result;
    }
    const backend::AttnSpec& attn = spec_.blocks.front().attn;
    const bool is_key = item.view.name.find("attn_k.") != std::string_view::npos;
    RowOrder order{item.change, attn.n_kv_heads, attn.n_heads / attn.n_kv_heads + 2};
    if (has_two_halves(item.change)) order = {item.change, is_key ? attn.n_kv_heads : attn.n_heads, 2};
    if (item.change == HubChange::kSplitQuarters) order = {item.change, 4, 3};
    order.size = static_cast<int64_t>(n_rows) / (order.heads * order.parts);
    rows_to_there(bytes_of(values), order, width * sizeof(float), reinterpret_cast<std::byte*>(result.data()));
    return result;
  }

  std::vector<float> revert_delta(const Item& item, std::vector<float> values) const {
    const backend::DeltaSpec delta = delta_of();
    const ValueHeads heads = heads_of(item.change, {delta.n_k_heads, delta.n_v_heads});
    TensorView floats = item.view;
    floats.dtype = DType::kF32;
    const auto pieces = head_pieces(floats, item.change, heads, delta.v_width());
    if (!pieces) return values;
    if (are_rates(item.change)) from_rates(values.data(), static_cast<int64_t>(values.size()));
    std::vector<float> result(values.size());
    to_groups(reinterpret_cast<const std::byte*>(values.data()), *pieces, heads,
              reinterpret_cast<std::byte*>(result.data()));
    return result;
  }

  const formats::ModelFile& file_;
  const fs::path& folder_;
  const HubWriteOptions& options_;
  ArchSpec spec_;
  const Family* family_ = nullptr;
  const HubForm* form_ = nullptr;
  std::vector<Item> items_;
  std::vector<Shard> shards_;
  uint64_t done_bytes_ = 0;
  formats::WriteReport report_;
};

}  // namespace

Result<formats::WriteReport> write_hub_folder(const formats::ModelFile& file, const fs::path& folder,
                                              const HubWriteOptions& options) {
  return HubWriter(file, folder, options).write();
}

}  // namespace candor::model
