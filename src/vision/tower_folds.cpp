#include "vision/tower_folds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "formats/quote.h"

namespace candor::vision {
namespace {

constexpr std::string_view kClassRow = "v.class_embd";
constexpr std::string_view kPositions = "v.position_embd.weight";
constexpr std::string_view kPatchBias = "v.patch_embd.bias";
constexpr float kQuick = 1.702f;

std::vector<float> decoded(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  if (tensor.shape.n_dims == 2) {
    decode_rows(tensor, values.data());
  } else {
    decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), values.data());
  }
  return values;
}

// [rows] for a matrix's rows or a vector's elements, none of them: 1; and for all.
struct Factors {
  std::vector<float> rows{};
  float all = 1.0f;
};

class Folder {
 public:
  Folder(std::vector<TensorView>& tensors, formats::TensorCopies& copies) : tensors_(tensors), copies_(copies) {}

  Result<void> add_class_row(bool is_last) {
    const TensorView* own = find(kClassRow);
    TensorView* table = find(kPositions);
    if (own == nullptr || table == nullptr) return missing(own == nullptr ? kClassRow : kPositions);
    if (table->shape.n_dims != 2 || own->shape.n_elements() != table->shape[1]) return misfit(*own, *table);
    std::vector<float> row = decoded(*own);
    if (const TensorView* bias = find(kPatchBias); bias != nullptr) {
      if (bias->shape.n_elements() != table->shape[1]) return misfit(*bias, *table);
      const std::vector<float> always = decoded(*bias);
      for (size_t i = 0; i < row.size(); ++i) row[i] -= always[i];
    }
    CANDOR_TRY(replace(*table, [row = std::move(row), is_last](std::vector<float>& values) {
      if (is_last) std::rotate(values.begin(), values.end() - std::ssize(row), values.end());
      for (size_t i = 0; i < row.size(); ++i) values[i] += row[i];
    }));
    drop(kClassRow);
    return {};
  }

  Result<void> scale_layers() {
    constexpr std::pair<std::string_view, std::string_view> kScaled[] = {{".ls1.weight", ".attn_out."},
                                                                         {".ls2.weight", ".ffn_down."}};
    for (const auto& [end, of] : kScaled) {
      for (const std::string& name : names_ending(end)) {
        const std::string stem = name.substr(0, name.size() - end.size()).append(of);
        const Factors factors{decoded(*find(name))};
        if (find(stem + "weight") == nullptr) return missing(stem + "weight");
        CANDOR_TRY(scale(stem + "weight", factors));
        CANDOR_TRY(scale(stem + "bias", factors));
        drop(name);
      }
    }
    return {};
  }

  Result<void> swap_quarters() {
    for (const std::string_view of : {".attn_q", ".attn_k"}) {
      const std::string end = std::string(of) + "_norm.weight";
      for (const std::string& name : names_ending(end)) {
        const std::string matrix = name.substr(0, name.size() - end.size()).append(of).append(".weight");
        if (find(matrix) == nullptr) return missing(matrix);
        const int64_t head_dim = find(name)->shape.n_elements();
        if (head_dim == 0 || head_dim % 4 != 0 || find(matrix)->shape[0] < head_dim ||
            find(matrix)->shape[0] % head_dim != 0) {
          return misfit(*find(name), *find(matrix));
        }
        CANDOR_TRY(swap_quarters(*find(name), head_dim));
        CANDOR_TRY(swap_quarters(*find(matrix), head_dim));
      }
    }
    return {};
  }

  Result<void> scale_activations() {
    for (const std::string& name : names_ending(".ffn_up.weight")) CANDOR_TRY(scale(name, {{}, kQuick}));
    for (const std::string& name : names_ending(".ffn_up.bias")) CANDOR_TRY(scale(name, {{}, kQuick}));
    for (const std::string& name : names_ending(".ffn_down.weight")) CANDOR_TRY(scale(name, {{}, 1.0f / kQuick}));
    return {};
  }

 private:
  TensorView* find(std::string_view name) {
    const auto found = std::ranges::find(tensors_, name, &TensorView::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  void drop(std::string_view name) {
    std::erase_if(tensors_, [&](const TensorView& tensor) { return tensor.name == name; });
  }
  std::vector<std::string> names_ending(std::string_view end) const {
    std::vector<std::string> names;
    for (const TensorView& tensor : tensors_) {
      if (tensor.name.starts_with("v.blk.") && tensor.name.ends_with(end)) names.emplace_back(tensor.name);
    }
    return names;
  }

  Error missing(std::string_view name) const {
    return {ErrorKind::kInvalidInput,
            fmt::format("tensor \"{}\" is missing: the file is incomplete, or a part of it is missing", name)};
  }
  Error misfit(const TensorView& part, const TensorView& whole) const {
    return {ErrorKind::kInvalidInput,
            fmt::format("tensor {} {} does not fit tensor \"{}\" {}: the file is damaged",
                        formats::in_quotes(part.name), to_string(part.shape), whole.name, to_string(whole.shape))};
  }

  // Nothing where the tensor is absent.
  Result<void> scale(const std::string& name, Factors factors) {
    TensorView* tensor = find(name);
    if (tensor == nullptr) return {};
    const auto n_rows = static_cast<size_t>(tensor->shape.n_dims == 0 ? 1 : tensor->shape[0]);
    if (!factors.rows.empty() && factors.rows.size() != n_rows) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("tensor \"{}\" {} has another number of rows than the {} factors of its layer: the file "
                              "is damaged",
                              name, to_string(tensor->shape), factors.rows.size()));
    }
    return replace(*tensor, [factors = std::move(factors), n_rows](std::vector<float>& values) {
      const size_t n_cols = n_rows == 0 ? 0 : values.size() / n_rows;
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] *= factors.rows.empty() ? factors.all : factors.rows[i / n_cols];
      }
    });
  }

  // Of each head's rows or numbers, which keep their type.
  Result<void> swap_quarters(TensorView& tensor, int64_t head_dim) {
    const size_t n_bytes = tensor.n_bytes;
    const size_t quarter = n_bytes / static_cast<size_t>(tensor.shape[0]) * static_cast<size_t>(head_dim / 4);
    return copy(tensor, tensor.dtype, n_bytes, [n_bytes, quarter](const std::byte* from, std::byte* to) {
      for (size_t at = 0; at < n_bytes; at += 4 * quarter) {
        constexpr size_t kOrder[] = {0, 2, 1, 3};
        for (size_t i = 0; i < 4; ++i) std::memcpy(to + at + i * quarter, from + at + kOrder[i] * quarter, quarter);
      }
    });
  }

  // By a copy in f32, made when it is read.
  Result<void> replace(TensorView& tensor, std::function<void(std::vector<float>&)> change) {
    const size_t n_bytes = static_cast<size_t>(tensor.shape.n_elements()) * sizeof(float);
    const auto write = [from = tensor, change = std::move(change)](const std::byte* bytes, std::byte* to) {
      TensorView standing = from;
      standing.data = bytes;
      std::vector<float> values = decoded(standing);
      change(values);
      std::memcpy(to, values.data(), values.size() * sizeof(float));
    };
    return copy(tensor, DType::kF32, n_bytes, write);
  }

  template <class Write>
  Result<void> copy(TensorView& tensor, DType dtype, size_t n_bytes, Write write) {
    const formats::CopySource* made = copies_.source_of(tensor.bytes());
    formats::CopySource source;
    if (made != nullptr) {
      source = formats::behind(*made, tensor.n_bytes, write);
    } else {
      source = {[write, from = tensor.data](std::byte* to) -> Result<void> {
                  write(from, to);
                  return {};
                },
                {tensor.bytes()}};
    }
    CANDOR_ASSIGN(tensor.data, copies_.add(n_bytes, tensor.name, std::move(source)));
    tensor.dtype = dtype;
    tensor.n_bytes = n_bytes;
    return {};
  }

  std::vector<TensorView>& tensors_;
  formats::TensorCopies& copies_;
};

}  // namespace

Result<void> fold_tensors(const Folds& folds, std::vector<TensorView>& tensors, formats::TensorCopies& copies) {
  Folder folder(tensors, copies);
  if (folds.class_row) CANDOR_TRY(folder.add_class_row(folds.class_row_is_last));
  if (folds.layer_scales) CANDOR_TRY(folder.scale_layers());
  if (folds.quick_gelu) CANDOR_TRY(folder.scale_activations());
  if (folds.half_head_pairs) CANDOR_TRY(folder.swap_quarters());
  return {};
}

}  // namespace candor::vision
