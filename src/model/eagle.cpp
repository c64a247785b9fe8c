#include "model/eagle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <variant>

#include "model/hparams.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

constexpr size_t kLeastLayers = 2;
constexpr size_t kMostLayers = 8;

Error mismatch(const std::string& why) {
  return fail(ErrorKind::kInvalidInput, why);
}

// What the model has before these of its blocks; behind the last one: their number.
Result<std::vector<int32_t>> layers_of(const formats::ModelFile& file, const ArchSpec& model) {
  const std::string key = fmt::format("{}.target_layers", eagle3_family().name);
  const auto n_blocks = static_cast<int64_t>(model.blocks.size());
  CANDOR_ASSIGN(const std::vector<int64_t>* stated, formats::meta_ints(file, key));
  const std::vector<int64_t> layers = stated != nullptr ? *stated : std::vector<int64_t>{2, n_blocks / 2, n_blocks - 3};
  const bool is_ascending = std::ranges::adjacent_find(layers, std::greater_equal<>()) == layers.end();
  const bool fits = layers.size() >= kLeastLayers && layers.size() <= kMostLayers && is_ascending &&
                    layers.front() >= 0 && layers.back() <= n_blocks;
  if (fits) return std::vector<int32_t>(layers.begin(), layers.end());
  return mismatch(
      fmt::format("it reads the model in front of the blocks {}{}, expected {} to {} of them, ascending "
                  "from 0 to {}: a head of a model of another depth",
                  fmt::join(layers, ", "), stated == nullptr ? " (which nothing in it says)" : "", kLeastLayers,
                  kMostLayers, n_blocks));
}

Result<void> check_width(const formats::ModelFile& file, const ArchSpec& model) {
  const Hparams hparams(file, eagle3_family().name);
  CANDOR_ASSIGN(const int32_t stated, hparams.int_or("target_hidden_size", model.dim, {1, kMaxWidth}));
  if (stated == model.dim) return {};
  return mismatch(fmt::format("made for a model of width {}, but the model's is {}", stated, model.dim));
}

// What it shares with the model has the model's width and its words.
Result<void> check_shared(const formats::ModelFile& file, const ArchSpec& head, const ArchSpec& model) {
  if (head.dim == model.dim) return {};
  for (const char* name : {"token_embd.weight", "output.weight"}) {
    if (file.find(name) != nullptr) continue;
    return mismatch(
        fmt::format("of width {}, but the model's is {}, and tensor \"{}\" is missing, which it can share "
                    "with a model of its own width alone",
                    head.dim, model.dim, name));
  }
  return {};
}

// Rows of a matrix of the file; 0 where it is missing or none, which its binding says.
int32_t rows_of(const formats::ModelFile& file, std::string_view name) {
  const TensorView* tensor = file.find(name);
  const bool is_matrix = tensor != nullptr && tensor->shape.n_dims == 2;
  return is_matrix && tensor->shape[0] <= kMaxVocab ? static_cast<int32_t>(tensor->shape[0]) : 0;
}

Result<void> check_norms(const formats::ModelFile& file, const ArchSpec& head) {
  const bool has_norm = file.find("enc.output_norm.weight") != nullptr;
  if (has_norm == head.embed.norms_vectors) return {};
  return mismatch(has_norm ? "it has a norm in front of its projection (input_norm.weight), but \"norm_before_fc\" is "
                             "not true; set it to true"
                           : "\"norm_before_fc\" is true, but tensor input_norm.weight is missing: the file is "
                             "incomplete");
}

// A table, or logits of all of the model's tokens.
Result<void> check_tokens(const formats::ModelFile& file, const ArchSpec& head, const ArchSpec& model) {
  const TensorView* table = file.find(kEagleTokens);
  const int32_t n_tokens = head_tokens(head);
  if (table == nullptr) {
    if (n_tokens == model.vocab) return {};
    return mismatch(
        fmt::format("it has logits of {} tokens, and the model has {}, but tensor \"d2t\" is missing, which "
                    "says which of them",
                    n_tokens, model.vocab));
  }
  if (table->dtype == DType::kI64 && table->shape == Shape{1, {n_tokens}}) return {};
  return mismatch(fmt::format("tensor \"d2t\": {} {}; expected I64 [{}], one id for each row of its output matrix",
                              dtype_info(table->dtype).name, to_string(table->shape), n_tokens));
}

}  // namespace

bool is_eagle(const formats::ModelFile& file) {
  const formats::MetaValue* name = file.meta("general.architecture");
  const auto* text = name == nullptr ? nullptr : std::get_if<std::string_view>(name);
  return text != nullptr && *text == eagle3_family().name;
}

Result<ArchSpec> eagle_arch(const formats::ModelFile& file, const ArchSpec& model) {
  CANDOR_ASSIGN(ArchSpec head, eagle3_family().read(file));
  CANDOR_TRY(check_width(file, model));
  CANDOR_ASSIGN(head.embed.vector_layers, layers_of(file, model));
  const int64_t vector_dim = static_cast<int64_t>(head.embed.vector_layers.size()) * model.dim;
  if (vector_dim > kMaxWidth || vector_dim == head.dim) {
    return mismatch(
        fmt::format("it is {} wide, and what it reads of the model {}: expected another width, and at most "
                    "{}",
                    head.dim, vector_dim, kMaxWidth));
  }
  head.embed.vector_dim = static_cast<int32_t>(vector_dim);
  CANDOR_TRY(check_norms(file, head));
  CANDOR_TRY(check_shared(file, head, model));
  const int32_t n_rows = rows_of(file, "token_embd.weight");
  head.vocab = n_rows > 0 ? n_rows : model.vocab;
  if (head.vocab < model.vocab) {
    return mismatch(
        fmt::format("tensor \"token_embd.weight\" has {} rows, and the model {} tokens: a head of another "
                    "vocabulary",
                    head.vocab, model.vocab));
  }
  head.head.is_own = file.find("output.weight") != nullptr;
  head.head.tied = model.head.tied && !head.head.is_own;
  head.head.n_tokens = head.head.is_own ? std::max(1, rows_of(file, "output.weight")) : model.vocab;
  CANDOR_TRY(check_tokens(file, head, model));
  CANDOR_TRY(eagle_tokens(file, model));
  return head;
}

Result<std::vector<TokenId>> eagle_tokens(const formats::ModelFile& file, const ArchSpec& spec) {
  std::vector<TokenId> tokens;
  const TensorView* table = file.find(kEagleTokens);
  if (table == nullptr) return tokens;
  CANDOR_TRY(file.make_copy(table->bytes()));
  std::vector<bool> is_taken(static_cast<size_t>(spec.vocab));
  for (int64_t i = 0; i < table->shape.n_elements(); ++i) {
    int64_t id = 0;
    std::memcpy(&id, table->data + static_cast<size_t>(i) * sizeof id, sizeof id);
    const bool is_known = id >= 0 && id < spec.vocab;
    if (!is_known || is_taken[static_cast<size_t>(id)]) {
      return mismatch(
          fmt::format("tensor \"d2t\": element {} stands for token {}, {}", i, id,
                      is_known ? "which another one stands for"
                               : fmt::format("and the model has {}: a table of another vocabulary", spec.vocab)));
    }
    is_taken[static_cast<size_t>(id)] = true;
    tokens.push_back(static_cast<TokenId>(id));
  }
  return tokens;
}

}  // namespace candor::model
