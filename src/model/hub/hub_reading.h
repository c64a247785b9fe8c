#pragma once
// What a checkpoint's folder says of texts that are read (text_head.h): sentence-transformers' modules.json with its
// poolings, dense layers and prompts, and the labels of config.json. Reads the folder's files; for one thread.

#include <cstddef>
#include <deque>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// A module Dense: where its weights are.
struct DenseModule {
  std::filesystem::path weights;  // "2_Dense/model.safetensors", below the folder
};

// config: config.json. What is known and cannot be computed (a maximum of tokens, a path outside of the folder) is
// refused by name.
Result<std::vector<DenseModule>> read_reading(const std::filesystem::path& folder, const nlohmann::json& config,
                                              std::string_view prefix, formats::MetaList& metadata);

// "linear.weight" and "linear.bias" of module `number` as dense_2's, dense_3's and so on.
Result<void> add_dense(std::span<const TensorView> module, size_t number, std::deque<std::string>& names,
                       std::vector<TensorView>& tensors);

}  // namespace candor::model
