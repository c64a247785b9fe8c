#include "model/adapter/task_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_names.h"
#include "model/hub/hub_words.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

namespace fs = std::filesystem;
using formats::in_quotes;
using formats::safetensors::SafetensorsFile;
using nlohmann::json;

constexpr std::string_view kDown = ".parametrizations.weight.0.lora_A";
constexpr std::string_view kUp = ".parametrizations.weight.0.lora_B";

std::vector<float> values_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_rows(tensor, values.data());
  return values;
}

// Where the module's weight stands in GGUF files; "" of those that are not computed.
std::optional<std::string> place_of(const Family& family, std::string_view module) {
  const std::string name = fmt::format("{}.weight", module);
  for (const HubForm& form : family.hub) {
    for (const std::string& full : {name, "roberta." + name}) {
      for (const HubTensor& row : form.tensors) {
        if (const auto match = match_name(row.hub, full)) return fill_name(row.name, *match);
      }
      if (std::ranges::find(form.ignored, full) != form.ignored.end()) return std::string();
    }
  }
  return std::nullopt;
}

}  // namespace

bool has_tasks(const fs::path& folder) {
  const auto config = formats::read_json_file(folder / "config.json", kMaxConfigBytes);
  return config && config->is_object() && config->contains("lora_adaptations");
}

Result<void> TaskAdapterReader::read_config() {
  CANDOR_ASSIGN(const json config, formats::read_json_file(folder_ / "config.json", kMaxConfigBytes));
  const json tasks = config.is_object() ? config.value("lora_adaptations", json()) : json();
  const auto at = std::ranges::find(tasks, json(std::string(task_)));
  if (!tasks.is_array() || at == tasks.end()) {
    return list_.refused(task_, fmt::format("is none of its tasks, which are {}",
                                            tasks.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 200)));
  }
  number_ = at - tasks.begin();
  const json alpha = config.value("lora_alpha", json(1.0));
  if (!alpha.is_number()) return list_.refused("lora_alpha", "is no number");
  alpha_ = alpha.get<double>();
  const json prompts = config.value("task_instructions", json());
  const json prompt = prompts.is_object() ? prompts.value(std::string(task_), json("")) : json("");
  file_->prompt_ = prompt.is_string() ? prompt.get<std::string>() : std::string();
  return {};
}

Result<std::vector<TaskAdapterReader::Pair>> TaskAdapterReader::pairs() {
  const std::span<const TensorView> tensors = file_->shards_.front().tensors();
  std::vector<Pair> result;
  for (const TensorView& down : tensors) {
    if (!down.name.ends_with(kDown)) continue;
    const std::string module(down.name.substr(0, down.name.size() - kDown.size()));
    const auto up = std::ranges::find(tensors, fmt::format("{}{}", module, kUp), &TensorView::name);
    if (up == tensors.end()) return list_.refused(module, "lacks its lora_B");
    const bool are_stacks = down.shape.n_dims == 3 && up->shape.n_dims == 3 && down.shape[0] == up->shape[0] &&
                            number_ < down.shape[0] && dtype_info(down.dtype).is_weight &&
                            dtype_info(up->dtype).is_weight;
    if (!are_stacks || down.n_bytes == 0 || up->n_bytes == 0) {
      return list_.refused(module, fmt::format("has matrices {} and {}; expected one of each for each task",
                                               to_string(down.shape), to_string(up->shape)));
    }
    result.push_back({module, matrix_of(down, number_), matrix_of(*up, number_)});
  }
  return result;
}

Result<void> TaskAdapterReader::add(const Pair& pair) {
  const std::optional<std::string> place = place_of(family_, pair.name);
  if (!place) return list_.refused(pair.name, "is not in this model");
  if (place->empty()) return {};
  AdapterPart part{.down = pair.down, .up = pair.up, .name = pair.name};
  part.scale = static_cast<float>(alpha_ / static_cast<double>(std::max<int64_t>(pair.up.shape[1], 1)));
  return list_.add(*place, std::nullopt, std::move(part));
}

Result<void> TaskAdapterReader::add_tables(const Pair& words, const Pair* types) {
  const int64_t n_rows = words.down.shape[0], rank = words.down.shape[1], dim = words.up.shape[1];
  const int64_t more = types == nullptr ? 0 : types->down.shape[1];
  const bool fits =
      types == nullptr || (types->down.shape[0] == 1 && types->up.shape[0] == more && types->up.shape[1] == dim);
  if (!fits || words.up.shape[0] != rank || rank < 1 || more > rank || rank + more > kMaxAdapterRank ||
      n_rows > spec_.vocab) {
    return list_.refused(words.name, "and what is added to token types do not fit each other: expected one type");
  }
  const auto scale = [&](int64_t of_rank) { return static_cast<float>(alpha_ / static_cast<double>(of_rank)); };
  const std::vector<float> a = values_of(words.down), b = values_of(words.up);
  const std::vector<float> c = more == 0 ? std::vector<float>() : values_of(types->down);
  const std::vector<float> d = more == 0 ? std::vector<float>() : values_of(types->up);
  const auto table = [&](int64_t rows) {
    const Shape shape{2, {rows, rank + more}};
    std::vector<std::byte>& bytes =
        file_->copies_.emplace_back(static_cast<size_t>(shape.n_elements()) * sizeof(float));
    return TensorView{words.up.name, DType::kF32, shape, bytes.data(), bytes.size()};
  };
  AdapterPart part{.down = table(n_rows), .up = table(dim), .name = words.name};
  part.scale = scale(rank);
  const auto put = [](const TensorView& to, int64_t row, int64_t column, float value) {
    const auto at = static_cast<size_t>(row * to.shape[1] + column);
    std::memcpy(const_cast<std::byte*>(to.data) + at * sizeof(float), &value, sizeof(value));
  };
  for (int64_t row = 0; row < n_rows; ++row) {
    for (int64_t k = 0; k < rank; ++k) put(part.down, row, k, a[static_cast<size_t>(row * rank + k)]);
    for (int64_t k = 0; k < more; ++k) put(part.down, row, rank + k, c[static_cast<size_t>(k)]);
  }
  const float weight = more == 0 ? 1.0f : scale(more) / scale(rank);
  for (int64_t row = 0; row < dim; ++row) {
    for (int64_t k = 0; k < rank; ++k) put(part.up, row, k, b[static_cast<size_t>(k * dim + row)]);
    for (int64_t k = 0; k < more; ++k) put(part.up, row, rank + k, weight * d[static_cast<size_t>(k * dim + row)]);
  }
  return list_.add("token_embd.weight", std::nullopt, std::move(part));
}

Result<std::unique_ptr<AdapterFile>> TaskAdapterReader::read() {
  file_ = std::make_unique<AdapterFile>();
  file_->format_ = "task";
  CANDOR_TRY(read_config());
  CANDOR_ASSIGN(SafetensorsFile shard, SafetensorsFile::open(folder_ / "model.safetensors"));
  file_->shards_.push_back(std::move(shard));
  CANDOR_ASSIGN(const std::vector<Pair> all, pairs());
  const Pair* words = nullptr;
  const Pair* types = nullptr;
  for (const Pair& pair : all) {
    if (pair.name.ends_with("word_embeddings")) {
      words = &pair;
    } else if (pair.name.ends_with("token_type_embeddings")) {
      types = &pair;
    } else {
      CANDOR_TRY(add(pair));
    }
    file_->n_bytes_ += pair.down.n_bytes + pair.up.n_bytes;
  }
  if (words == nullptr && types != nullptr) return list_.refused(types->name, "has no word_embeddings beside it");
  if (words != nullptr) CANDOR_TRY(add_tables(*words, types));
  file_->parts_ = list_.take();
  return std::move(file_);
}

}  // namespace candor::model
