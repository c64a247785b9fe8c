#pragma once
// --fast-weights: a model file whose Q4_K matrices are read as DType::kQ4_KFast (tensor/quant/q4_k_fast.h). Names,
// shapes and bytes stay the file's: only what the bytes mean changes, so that nothing is copied.

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::quantize {

// Refuses a file without any Q4_K matrix.
Result<std::unique_ptr<formats::ModelFile>> read_fast(std::unique_ptr<formats::ModelFile> file);

// Matrices of the file that are read so.
int32_t n_fast_matrices(const formats::ModelFile& file);

}  // namespace candor::quantize
