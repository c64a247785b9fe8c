#pragma once
// Heads of a checkpoint's folder that stand in files of their own: sentence-transformers' Dense modules, and BGE M3's
// layers for weights of words and for vectors of tokens. safetensors, or files of torch.save that hold tensors alone
// (formats/torch). Reads files; for one thread.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// One linear layer.
struct HeadFile {
  std::filesystem::path file;  // below the folder: "2_Dense/model.safetensors"
  std::string stem;            // of its tensors in GGUF: "dense_2"
};

// A tensor of the head under its name here; its bytes are to be copied at once.
using AddHeadTensor = std::function<Result<void>(const TensorView& tensor)>;

// The file of a module's weights: model.safetensors, or else pytorch_model.bin.
std::filesystem::path module_weights(const std::filesystem::path& folder, const std::filesystem::path& module);

// BGE M3's, where they are.
std::vector<HeadFile> heads_beside(const std::filesystem::path& folder);

// The file's size. Refused: tensors other than a layer's weight and bias.
Result<size_t> read_head(const std::filesystem::path& folder, const HeadFile& head, const AddHeadTensor& add);

}  // namespace candor::model
