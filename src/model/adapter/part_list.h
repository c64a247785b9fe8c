#pragma once
// Gathers the parts of an adapter under the names of a GGUF file of the base model: to which matrices each belongs, and
// whether it has their shapes.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "model/adapter/adapter_file.h"
#include "model/arch_spec.h"
#include "model/families/families.h"

namespace candor::model {

class PartList {
 public:
  // Borrowed.
  PartList(const ArchSpec& spec, const Family& family, const std::filesystem::path& path)
      : spec_(spec), family_(family), path_(path) {}

  // tensor: "blk.3.attn_q.weight"; where the file has several matrices in one ("blk.3.attn_qkv.weight"), each gets its
  // rows. expert: of an expert's own part of "blk.3.ffn_up_exps.weight". The role, layer and expert of `part` are set.
  Result<void> add(std::string_view tensor, std::optional<int32_t> expert, AdapterPart part);

  std::vector<AdapterPart> take() { return std::move(parts_); }
  // "adapter 'path': `name` ...: reason"
  Error refused(std::string_view name, std::string_view reason) const;

 private:
  Result<void> add_role(TensorRole role, AdapterPart part);
  Result<void> check_shape(const AdapterPart& part) const;
  Result<void> split_rows(const AdapterPart& part, std::vector<std::pair<TensorRole, int64_t>> pieces);

  const ArchSpec& spec_;
  const Family& family_;
  const std::filesystem::path& path_;
  std::vector<AdapterPart> parts_;
  std::set<std::tuple<TensorRole, int32_t, int32_t>> places_;
};

// Rows [first, first + n) of a matrix.
TensorView rows_of(const TensorView& matrix, int64_t first, int64_t n);
// One of the matrices of [n, rows, columns].
TensorView matrix_of(const TensorView& stack, int64_t number);

}  // namespace candor::model
