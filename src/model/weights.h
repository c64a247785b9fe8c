#pragma once
// The weights of a model in a backend, by role; and the binding of a file's tensors to those roles. Binding checks
// every shape exactly, and every tensor of the file is bound or listed as ignored by its family: anything else is
// refused. Owned by Model; freed before the backend.

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/families/families.h"
#include "model/model.h"

namespace candor::model {

using WeightPtr = std::unique_ptr<backend::Weight>;

struct Projection {
  WeightPtr weight;  // [out, in]
  WeightPtr bias;    // [out] or nullptr
};

struct BlockWeights {
  WeightPtr attn_norm;  // [D]
  Projection q;         // [H * Dh, D]
  Projection k;         // [Hk * Dh, D]
  Projection v;         // [Hk * Dh, D]
  Projection attn_out;  // [D, H * Dh]
  WeightPtr ffn_norm;   // [D]
  Projection gate;      // [F, D]
  Projection up;        // [F, D]
  Projection down;      // [D, F]
};

struct ModelWeights {
  WeightPtr embedding;  // [V, D]
  std::vector<BlockWeights> blocks;
  WeightPtr final_norm;  // [D]
  WeightPtr head;        // [V, D]; nullptr where the embedding serves
};

// One tensor of the file and the place that it is for.
struct Binding {
  const TensorView* tensor = nullptr;
  TensorRole role = TensorRole::kEmbedding;
  int32_t layer = 0;  // 0 for tensors outside the blocks
};

// Names, shapes and completeness, without reading a weight.
Expected<std::vector<Binding>> bind_tensors(const formats::ModelFile& file, const Family& family, const ArchSpec& spec);

// Uploads what was bound, in the file's order. Vectors that hold NaN or infinity are refused.
Expected<std::unique_ptr<ModelWeights>> upload_weights(std::span<const Binding> bindings, const ArchSpec& spec,
                                                       backend::Backend& backend, const LoadOptions& options);

// Memory that upload_weights() will take.
Expected<uint64_t> upload_bytes(std::span<const Binding> bindings, const ArchSpec& spec,
                                const backend::Backend& backend);

// Memory that the weights occupy in the backend.
size_t weight_bytes(const ModelWeights& weights);

}  // namespace candor::model
