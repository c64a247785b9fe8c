#pragma once
// Makes the sources (formats/tensor_copies.h) of tensors that are computed when they are read, such as transposed or
// joined ones, out of a tensor whose bytes lie in the checkpoint's files or are computed in the same way.

#include <cstddef>
#include <functional>

#include "formats/tensor_copies.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// Writes all bytes of a new tensor.
using WriteTensor = std::function<void(const TensorView& from, std::byte* to)>;

// made: the source of `from`, where it is computed as well; nullptr: its bytes are in a file.
formats::CopySource source_from(const TensorView& from, const formats::CopySource* made, WriteTensor write);

}  // namespace candor::model
