#pragma once
// The truth that every backend is compared with: slow, obvious, scalar, one thread.
//
// Numbers: weights are the file's decoded values in f32, K and V are kept in f32 (KvType::kF32 alone). Activations are
// stored as f32; inside a dot product, a norm or a softmax everything is accumulated in double, so that the only
// roundings are those of the stored values. A row's result depends on that row's sequence alone, never on the other
// rows of the step. The one elementary function is exp, our own (reference_math.h).
// Memory: 4 bytes for each weight, whatever the file's type.

#include <memory>

#include "backend/backend.h"

namespace candor::backend {

std::unique_ptr<Backend> make_reference_backend();

}  // namespace candor::backend
