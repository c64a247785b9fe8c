#pragma once
// Tensors of a folder that are made when they are read (formats/tensor_copies.h), out of tensors whose bytes stand or
// are made themselves.

#include <cstddef>
#include <functional>

#include "formats/tensor_copies.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// Writes all bytes of a new tensor.
using WriteTensor = std::function<void(const TensorView& from, std::byte* to)>;

// made: what makes `from`, where its bytes do not stand.
formats::CopySource source_from(const TensorView& from, const formats::CopySource* made, WriteTensor write);

}  // namespace candor::model
