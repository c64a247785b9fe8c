#include "model/hub/hub_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "formats/json_text.h"
#include "formats/name_order.h"
#include "formats/quote.h"
#include "model/families/families.h"
#include "model/hparams.h"
#include "model/hub/hub_answers.h"
#include "model/hub/hub_choice.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_delta.h"
#include "model/hub/hub_distances.h"
#include "model/hub/hub_eagle.h"
#include "model/hub/hub_experts.h"
#include "model/hub/hub_fields.h"
#include "model/hub/hub_flags.h"
#include "model/hub/hub_form.h"
#include "model/hub/hub_generation.h"
#include "model/hub/hub_heads.h"
#include "model/hub/hub_index.h"
#include "model/hub/hub_latent.h"
#include "model/hub/hub_masked.h"
#include "model/hub/hub_names.h"
#include "model/hub/hub_nvfp4.h"
#include "model/hub/hub_outer.h"
#include "model/hub/hub_prediction.h"
#include "model/hub/hub_reading.h"
#include "model/hub/hub_rope.h"
#include "model/hub/hub_rope_factors.h"
#include "model/hub/hub_rows.h"
#include "model/hub/hub_shards.h"
#include "model/hub/hub_state.h"
#include "model/hub/hub_tasks.h"
#include "model/hub/hub_weights.h"
#include "model/hub/hub_words.h"
#include "model/hub/made_tensor.h"
#include "model/hub/other_folders.h"
#include "model/tensor_roles.h"
#include "model/text_head.h"
#include "tensor/dtype.h"

namespace candor::model {

namespace fs = std::filesystem;
using formats::in_quotes;
using formats::safetensors::SafetensorsFile;
using nlohmann::json;

namespace {

constexpr std::string_view name_of(const TensorView& tensor) {
  return tensor.name;
}

}  // namespace

class HubReader {
 public:
  explicit HubReader(fs::path folder) : folder_(std::move(folder)), file_(new HubFolder()) {}

  Result<std::unique_ptr<HubFolder>> read() {
    const auto done = read_parts();
    CANDOR_TRY(file_->check_intact());
    if (!done) return done.error();
    return std::move(file_);
  }

 private:
  Result<void> read_parts() {
    CANDOR_ASSIGN(json config, formats::read_json_file(folder_ / "config.json", kMaxConfigBytes));
    if (is_eagle_config(config)) config = flat_eagle_config(config);
    CANDOR_ASSIGN(const FamilyForm chosen, choose_form(config, path_name("config.json")));
    form_ = chosen.form;
    if (chosen.outer != nullptr) {
      CANDOR_ASSIGN(config, text_config_of(config, path_name("config.json")));
    }
    CANDOR_TRY(add_modelopt_config(folder_, config));
    CANDOR_ASSIGN(weights_, read_hub_weights(config, path_name("config.json")));
    const json stated = config;
    CANDOR_TRY(read_config(std::move(config), chosen));
    CANDOR_ASSIGN(parts_, read_reading(folder_, stated, chosen.family->name, file_->metadata_));
    CANDOR_TRY(open_shards(folder_, file_->info_, file_->shards_));
    CANDOR_TRY(refuse_adapter(folder_));
    CANDOR_TRY(map_tensors(chosen));
    for (const HeadFile& head : parts_.heads) CANDOR_TRY(add_head(head));
    CANDOR_TRY(add_sinusoids(*chosen.family));
    file_->order_ = formats::order_by_name(std::span<const TensorView>(file_->tensors_), name_of);
    CANDOR_TRY(refuse_duplicates(file_->tensors_, file_->order_, in_quotes(folder_.string())));
    if (!form_->is_head) CANDOR_TRY(read_ends(stated));
    CANDOR_TRY(account());
    if (const WordAnswers* words = answers_of(folder_, stated)) CANDOR_TRY(add_answers(*words, chosen.family->name));
    file_->metadata_.add_string("general.name", folder_.filename().string());
    file_->info_.format = "safetensors";
    return {};
  }

  // What a model has besides its blocks.
  Result<void> read_ends(const json& stated) {
    if (reads_alone(stated, file_->find("output.weight") != nullptr, is_tied())) {
      file_->metadata_.add(std::string(kHasNoHead), true);
    }
    CANDOR_TRY(check_head(*config_, *file_, in_quotes(folder_.string())));
    return read_vocabulary();
  }

  Result<void> read_config(json config, const FamilyForm& chosen) {
    CANDOR_ASSIGN(config_, HubConfig::make(std::move(config), form_->model_type, path_name("config.json")));
    CANDOR_ASSIGN(const HubRope rope, unite_rope(*config_));
    config_->keep_rope(rope.full);
    CANDOR_TRY(read_hub_fields(*config_, rope, chosen.family->name, *form_, file_->metadata_));
    CANDOR_ASSIGN(const std::vector<RopeFactors> factors, rope_factors(*config_, rope));
    for (const RopeFactors& row : factors) {
      CANDOR_TRY(add_tensor(std::string(row.name), {1, {static_cast<int64_t>(row.values.size())}}, row.values));
    }
    return {};
  }

  // Behind the tensors, whose changes read settings too.
  Result<void> account() {
    CANDOR_TRY(config_->check_all_read());
    for (const HubSetting& setting : config_->assumed()) file_->info_.assumed.push_back({setting.key, setting.value});
    file_->info_.assumed_by = hub_defaults_source();
    file_->info_.without_effect = config_->without_effect();
    CANDOR_ASSIGN(file_->info_.suggested, suggested_settings(folder_));
    return {};
  }

  // Rows of the head, for those of its two words.
  Result<void> add_answers(const WordAnswers& answers, std::string_view prefix) {
    CANDOR_ASSIGN(const auto ids, answer_tokens(answers, file_->metadata_));
    const TensorView* head = file_->find("output.weight");
    if (head == nullptr) head = file_->find("token_embd.weight");
    const TensorView from = *head;
    CANDOR_ASSIGN(std::byte * rows, add_copy("cls.output.weight", from.dtype, {2, {std::ssize(ids), from.shape[1]}}));
    CANDOR_TRY(file_->make_copy(from.bytes()));
    for (size_t i = 0; i < ids.size(); ++i)
      std::memcpy(rows + i * from.row_bytes(), from.row(ids[i]), from.row_bytes());
    add_answer_keys(answers, prefix, file_->metadata_);
    file_->order_ = formats::order_by_name(std::span<const TensorView>(file_->tensors_), name_of);
    return {};
  }

  std::string path_name(const char* name) const { return in_quotes((folder_ / name).string()); }
  static Error bad(const std::string& what, const std::string& why) {
    return fail(ErrorKind::kInvalidInput, what + ": " + why);
  }

  Result<void> map_tensors(const FamilyForm& chosen) {
    std::deque<TensorView> tensors;
    const uint64_t n_layers = count_layers(chosen.family->name, file_->metadata_);
    uint64_t n_prediction = 0;
    const std::string_view stem = missing_stem(*form_, file_->shards_);
    for (const SafetensorsFile& shard : file_->shards_) {
      for (const TensorView& tensor : shard.tensors()) {
        std::optional<std::string> name = name_without_tasks(tensor.name);
        if (!name) continue;
        if (chosen.outer != nullptr) name = name_in_text(tensor.name, *chosen.outer);
        if (name && form_->rename != nullptr) name = form_->rename(*name);
        if (name && !stem.empty()) name = with_stem(*name, stem, *form_);
        if (name) n_prediction = std::max(n_prediction, put_behind(*name, *form_, n_layers));
        if (!name) file_->info_.left_out.emplace_back(tensor.name);
        if (name) tensors.emplace_back(tensor).name = file_->names_.emplace_back(std::move(*name));
      }
    }
    count_prediction(chosen.family->name, n_layers, n_prediction, file_->metadata_);
    for (const TensorView& tensor : tensors) on_hub_.emplace(tensor.name, &tensor);
    for (TensorView& tensor : tensors) CANDOR_TRY(join_parts(tensor));
    for (const TensorView& tensor : tensors) {
      if (!joined_parts_.contains(tensor.name)) CANDOR_TRY(map_tensor(tensor, *chosen.form));
    }
    CANDOR_TRY(check_flagged(*config_, *chosen.form, [this](const std::string& name) { return find_on_hub(name); }));
    on_hub_.clear();
    return {};
  }

  // Several tensors of quantised weights become one, under the name that it has where it is not quantised.
  Result<void> join_parts(TensorView& tensor) {
    const auto find = [this](const std::string& name) { return find_on_hub(name); };
    CANDOR_ASSIGN(std::optional<JoinedWeight> joined, join_weight(weights_, tensor, find));
    if (!joined) return {};
    formats::CopySource source =
        source_from(tensor, nullptr, [fill = std::move(joined->fill)](const TensorView&, std::byte* to) { fill(to); });
    for (const std::string& part : joined->parts) {
      if (const TensorView* other = find_on_hub(part)) source.bytes.push_back(other->bytes());
    }
    joined_parts_.insert(joined->parts.begin(), joined->parts.end());
    TensorView view{file_->names_.emplace_back(joined->name), joined->dtype, joined->shape, nullptr, 0};
    view.n_bytes = *tensor_bytes_of(view.dtype, view.shape);
    CANDOR_ASSIGN(view.data, file_->copies_.add(view.n_bytes, view.name, std::move(source)));
    tensor = view;
    return {};
  }

  Result<void> map_tensor(const TensorView& tensor, const HubForm& form) {
    if (const auto name = parts_.guesses_words ? masked_head_tensor(tensor.name, is_tied()) : std::nullopt) {
      if (!name->empty()) file_->tensors_.emplace_back(tensor).name = *name;
      return {};
    }
    for (const std::string_view pattern : form.ignored) {
      if (!match_name(pattern, tensor.name)) continue;
      file_->info_.left_out.emplace_back(tensor.name);
      return {};
    }
    CANDOR_TRY(check_flags(*config_, form, tensor.name));
    if (const auto name = label_tensor(tensor.name)) {
      file_->tensors_.emplace_back(tensor).name = *name;
      return {};
    }
    for (const HubExperts& row : form.experts) {
      CANDOR_ASSIGN(const bool is_mapped, map_experts(tensor, row));
      if (is_mapped) return {};
    }
    for (const HubTensor& row : form.tensors) {
      const std::optional<Match> match = match_name(row.hub, tensor.name);
      if (!match) continue;
      if (row.name == "output.weight" && is_tied()) return {};
      if (row.change == HubChange::kBuckets) return add_distances(tensor);
      if (divides_rows(row.change)) CANDOR_TRY(refuse_joined(weights_, tensor, form_->model_type));
      if (row.change == HubChange::kSplitMixed) return add_mixed(tensor, row, *match);
      if (row.change == HubChange::kSplitLatent) return add_latent(tensor, row, *match);
      if (row.change == HubChange::kSplitRows) {
        return split_rows(tensor, [&](int32_t part, DType dtype, const Shape& shape, formats::CopySource source) {
          return add_made(fill_name((&row)[part].name, *match), dtype, shape, std::move(source));
        });
      }
      TensorView view = tensor;
      CANDOR_TRY(change(row.change, view));
      view.name = file_->names_.emplace_back(fill_name(row.name, *match));
      file_->tensors_.push_back(view);
      return {};
    }
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: tensor {} {} has no place in a {} model", in_quotes(folder_.string()),
                            in_quotes(tensor.name), to_string(tensor.shape), form.model_type));
  }

  Result<void> add_head(const HeadFile& head) {
    const auto add = [this](const TensorView& tensor) -> Result<void> {
      CANDOR_ASSIGN(std::byte * bytes, add_copy(std::string(tensor.name), tensor.dtype, tensor.shape));
      std::memcpy(bytes, tensor.data, tensor.n_bytes);
      return {};
    };
    CANDOR_ASSIGN(const size_t n_bytes, read_head(folder_, head, add));
    file_->info_.paths.push_back(folder_ / head.file);
    file_->info_.n_bytes += n_bytes;
    return {};
  }

  const TensorView* find_on_hub(const std::string& name) const {
    const auto at = on_hub_.find(name);
    return at == on_hub_.end() ? nullptr : at->second;
  }

  // Whether the tensor is one of the row's.
  Result<bool> map_experts(const TensorView& tensor, const HubExperts& row) {
    for (const std::string_view end : {std::string_view(), kBiasEnd, kBlocksEnd, kScalesEnd}) {
      const std::optional<Match> match = match_name(fmt::format("{}{}", row.hub, end), tensor.name);
      if (!match) continue;
      const std::string stem(tensor.name.substr(0, tensor.name.size() - end.size()));
      const bool is_packed = end == kBlocksEnd || end == kScalesEnd;
      for (const std::string_view other : {kBlocksEnd, kScalesEnd}) {
        if (!is_packed || find_on_hub(fmt::format("{}{}", stem, other)) != nullptr) continue;
        return bad(
            fmt::format("tensor {}", in_quotes(tensor.name)),
            fmt::format("tensor {} is missing, which belongs to it", in_quotes(fmt::format("{}{}", stem, other))));
      }
      if (end == kScalesEnd) return true;
      const JoinedExperts joined{tensor, is_packed ? find_on_hub(fmt::format("{}{}", stem, kScalesEnd)) : nullptr};
      const auto add = [&](int32_t part, DType dtype, const Shape& shape, formats::CopySource source) {
        std::string name = fill_name(row.names[static_cast<size_t>(part)], *match).append(end == kBiasEnd ? ".bias" : ".weight");
        return add_made(std::move(name), dtype, shape, std::move(source));
      };
      CANDOR_ASSIGN(const PartOrder order, part_order(row, *config_));
      CANDOR_TRY(split_experts(joined, order, add));
      return true;
    }
    return false;
  }

  // A new tensor; its memory is to be filled.
  Result<std::byte*> add_copy(std::string name, DType dtype, const Shape& shape) {
    TensorView view{file_->names_.emplace_back(std::move(name)), dtype, shape, nullptr, 0};
    view.n_bytes = static_cast<size_t>(shape.n_elements() / shape.row_elements()) * view.row_bytes();
    CANDOR_ASSIGN(std::byte * copy, new_copy(view));
    view.data = copy;
    file_->tensors_.push_back(view);
    return copy;
  }

  // A new tensor, made when it is read.
  Result<void> add_made(std::string name, DType dtype, const Shape& shape, formats::CopySource source) {
    TensorView view{file_->names_.emplace_back(std::move(name)), dtype, shape, nullptr, 0};
    view.n_bytes = static_cast<size_t>(shape.n_elements() / shape.row_elements()) * view.row_bytes();
    CANDOR_ASSIGN(view.data, file_->copies_.add(view.n_bytes, view.name, std::move(source)));
    file_->tensors_.push_back(view);
    return {};
  }

  // The view becomes one of what write(original, to) makes when it is read; a vector's bytes stand at once.
  Result<void> make_from(TensorView& view, const WriteTensor& write) {
    if (view.shape.n_dims < 2) {
      CANDOR_ASSIGN(std::byte * copy, new_copy(view));
      write(view, copy);
      view.data = copy;
      return {};
    }
    formats::CopySource source = source_from(view, file_->copies_.source_of(view.bytes()), write);
    CANDOR_ASSIGN(view.data, file_->copies_.add(view.n_bytes, view.name, std::move(source)));
    return {};
  }

  bool is_tied() const { return (*config_)["tie_word_embeddings"] == true; }

  Result<void> scale(TensorView& view) {
    CANDOR_ASSIGN(const std::vector<RowFactors> factors, form_->factors(*config_, view.name));
    CANDOR_ASSIGN(const bool is_scaled, check_scaled(factors, view));
    if (!is_scaled) return {};
    return make_from(view, [factors](const TensorView& from, std::byte* to) { scale_rows(factors, from, to); });
  }

  Result<std::byte*> new_copy(const TensorView& view) { return file_->copies_.add(view.n_bytes, view.name); }
  Result<void> change(HubChange kind, TensorView& view) {
    const std::string what = fmt::format("tensor {}", in_quotes(view.name));
    const bool is_matrix = view.shape.n_dims == 2;
    const bool is_plain = view.dtype == DType::kF32 || view.dtype == DType::kF16 || view.dtype == DType::kBF16;
    if (kind == HubChange::kNone) return {};
    if (kind == HubChange::kOffsets) return add_places(view, [this](const TensorView& v) { return new_copy(v); });
    if (moves_rows(kind) && is_joined(weights_, view)) return reorder_heads(kind, view);
    CANDOR_TRY(refuse_joined(weights_, view, form_->model_type));
    if (!is_plain) return fail(ErrorKind::kUnsupported, what + ": expected F32, F16 or BF16");
    if (is_of_delta(kind)) {
      const ValueHeads heads = heads_of(kind, {size_of("ssm.group_count"), size_of("ssm.time_step_rank")});
      return change_delta(kind, heads, size_of("ssm.inner_size"), view,
                          [this](const TensorView& v) { return new_copy(v); });
    }
    if (kind == HubChange::kScaled) return scale(view);
    if (is_stacked(kind)) return stack(kind, view);
    if (is_of_state(kind)) {
      return change_state(kind, size_of("ssm.group_count"), view, [this](const TensorView& v) { return new_copy(v); });
    }
    if (kind == HubChange::kDropTwoRows) return drop_two_rows(view);
    if (kind == HubChange::kWidenRow && is_matrix && view.shape[0] == 1) view.shape = {1, {view.shape[1]}};
    if (kind == HubChange::kWiden || kind == HubChange::kWidenRow) return widen(view, 0.0f);
    if (kind == HubChange::kAddOne) return widen(view, 1.0f);
    if (kind == HubChange::kSwapInputs) return make_from(view, swap_halves_of);
    if (kind == HubChange::kTranspose) {
      return is_matrix ? transpose(view) : bad(what, fmt::format("shape {}; expected a matrix", to_string(view.shape)));
    }
    return reorder_heads(kind, view);
  }

  Result<void> reorder_heads(HubChange kind, TensorView& view) {
    const int64_t n_kv_heads = n_heads("attention.head_count_kv");
    const bool is_query = view.name.find("q_proj") != std::string_view::npos;
    if (has_two_halves(kind))
      return reorder_rows({kind, is_query ? n_heads("attention.head_count") : n_kv_heads, 2}, view);
    if (kind == HubChange::kSplitQuarters) return reorder_rows({kind, 4, 3}, view);
    const int64_t group = n_kv_heads < 1 ? 0 : n_heads("attention.head_count") / n_kv_heads;
    return reorder_rows({kind, n_kv_heads, group + 2}, view);
  }

  // The second tensor is that of the next row.
  Result<void> add_mixed(const TensorView& tensor, const HubTensor& row, const Match& match) {
    const int64_t k_dim = size_of("ssm.state_size"), v_width = size_of("ssm.inner_size");
    CANDOR_ASSIGN(const MixedRows rows, mixed_rows(tensor, size_of("ssm.group_count"), k_dim, v_width));
    const HubTensor& second = (&row)[1];
    const int64_t n_cols = tensor.shape[1];
    CANDOR_ASSIGN(std::byte * qkv, add_copy(fill_name(row.name, match), tensor.dtype, {2, {rows.n_qkv(), n_cols}}));
    CANDOR_ASSIGN(std::byte * gate,
                  add_copy(fill_name(second.name, match), tensor.dtype, {2, {rows.n_gate(), n_cols}}));
    split_mixed(tensor.data, rows, qkv, gate);
    return {};
  }

  Result<void> add_latent(const TensorView& tensor, const HubTensor& row, const Match& match) {
    const LatentHeads heads{.n_heads = size_of("attention.head_count"),
                            .key_dim = size_of("attention.key_length_mla") - size_of("rope.dimension_count"),
                            .value_dim = size_of("attention.value_length_mla"),
                            .latent_dim = size_of("attention.kv_lora_rank")};
    CANDOR_TRY(check_joined(tensor, heads));
    const auto add = [&](const HubTensor& part, DType dtype, const Shape& shape, WriteLatent write) {
      const auto fill = [heads, write](const TensorView& from, std::byte* to) { write(from, heads, to); };
      formats::CopySource source = source_from(tensor, file_->copies_.source_of(tensor.bytes()), fill);
      return add_made(fill_name(part.name, match), dtype, shape, std::move(source));
    };
    CANDOR_TRY(add(row, key_type_of(tensor.dtype), heads.key_shape(), write_keys));
    return add((&row)[1], tensor.dtype, heads.value_shape(), write_values);
  }

  int64_t n_heads(const std::string& suffix) const {
    return size_of(suffix) > 0 ? size_of(suffix) : size_of("attention.head_count");
  }
  int64_t size_of(std::string_view suffix) const { return largest_count(file_->metadata_, suffix); }

  Result<void> widen(TensorView& view, float added) {
    CANDOR_ASSIGN(float* values, widen_elements(view, [this](const TensorView& v) { return new_copy(v); }));
    for (int64_t i = 0; i < view.shape.n_elements(); ++i) values[i] += added;
    return {};
  }

  Result<void> transpose(TensorView& view) {
    CANDOR_TRY(make_from(view, transpose_each));
    std::swap(view.shape.dims[0], view.shape.dims[1]);
    return {};
  }

  Result<void> stack(HubChange kind, TensorView& view) {
    CANDOR_ASSIGN(const Shape shape, stacked_rows(view, size_of("expert_count")));
    view.shape = shape;
    if (kind == HubChange::kStackRows) return {};
    CANDOR_TRY(make_from(view, transpose_each));
    std::swap(view.shape.dims[1], view.shape.dims[2]);
    return {};
  }

  Result<void> reorder_rows(RowOrder order, TensorView& view) {
    CANDOR_ASSIGN(const size_t row_bytes, fit_rows(view, order));
    return make_from(view, [order, row_bytes](const TensorView& from, std::byte* to) {
      rows_to_here(from.data, order, row_bytes, to);
    });
  }

  Result<void> add_tensor(std::string name, Shape shape, const std::vector<float>& values) {
    CANDOR_ASSIGN(std::byte * copy, add_copy(std::move(name), DType::kF32, shape));
    if (!values.empty()) std::memcpy(copy, values.data(), values.size() * sizeof(float));
    return {};
  }

  Result<void> add_distances(const TensorView& buckets) {
    CANDOR_ASSIGN(const std::vector<float> biases, distance_biases(buckets));
    for (int64_t block = 0; block < size_of("block_count"); ++block) {
      const std::string name = fmt::format("blk.{}.attn_distance_bias", block);
      CANDOR_TRY(add_tensor(name, {1, {static_cast<int64_t>(biases.size())}}, biases));
    }
    return {};
  }

  Result<void> add_sinusoids(const Family& family) {
    CANDOR_ASSIGN(const std::optional<Shape> shape, unpublished_positions(*file_, family));
    if (!shape) return {};
    return add_tensor("position_embd.weight", *shape,
                      sinusoids(static_cast<int32_t>((*shape)[0]), static_cast<int32_t>((*shape)[1])));
  }

  Result<void> read_vocabulary() {
    const TensorView* embedding = file_->find("token_embd.weight");
    if (embedding == nullptr || embedding->shape.n_dims != 2 || embedding->shape[0] > kMaxVocab) return {};
    return read_words(folder_, embedding->shape[0], file_->metadata_);
  }

  fs::path folder_;
  std::unique_ptr<HubFolder> file_;
  std::optional<HubConfig> config_;
  const HubForm* form_ = nullptr;
  HubWeights weights_;
  ReadingParts parts_;
  std::set<std::string, std::less<>> joined_parts_;  // names of tensors that are in others now
  std::unordered_map<std::string_view, const TensorView*> on_hub_;
};

Result<std::unique_ptr<HubFolder>> HubFolder::open(const fs::path& folder) {
  return HubReader(folder).read();
}

}  // namespace candor::model
