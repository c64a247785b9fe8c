#pragma once
// What a quantised file will hold: its tensors, experts stacked, and the type of each.

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "quantize/quantizer.h"
#include "quantize/recipe.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::quantize {

// One tensor of the result, made of one tensor or of one for each expert.
struct Item {
  TensorView view;                // name and shape as written; data of the first part
  std::vector<TensorView> parts;  // outermost first
  DType dtype = DType::kF32;
};

size_t bytes_of(const Item& item);
ModelShape shape_of(const formats::ModelFile& file);

class TypePlan {
 public:
  // Both are borrowed.
  TypePlan(const formats::ModelFile& file, const QuantizeOptions& options) : file_(file), options_(options) {}

  Result<void> make();

  const std::vector<Item>& items() const { return items_; }

 private:
  Result<void> add_stack(const std::string& name, const std::map<size_t, TensorView>& experts);

  Result<void> choose_type(Item& item, const ModelShape& shape) const;

  const formats::ModelFile& file_;
  const QuantizeOptions& options_;
  std::deque<std::string> names_;
  std::vector<Item> items_;
};

}  // namespace candor::quantize
