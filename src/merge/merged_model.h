#pragma once
// A model with an adapter added to its weights: W + s * scale * up down, with gains or another W as docs/numerics.md
// ("Adapters") says. Sums are in f32, in the order of the rank, and are then written in the type of W: the result is
// not bit for bit what the adapter gives beside the model, but differs by that rounding alone.

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::merge {

// Of changed matrices, for who encodes them anew.
enum class MergedTypes : uint8_t { kKept, kQuantisedAsF32, kF32 };

struct MergeOptions {
  double scale = 1.0;  // s
  MergedTypes types = MergedTypes::kKept;
  int32_t n_threads = 1;
};

// The file with changed matrices, each made when it is read (make_copy()), and not kept. A model whose head is its
// embedding gets a head of its own where the adapter changes one of the two. Refused: what AdapterFile refuses, and
// such a model of a family without a tensor for its head.
Result<std::unique_ptr<formats::ModelFile>> merge_adapter(std::unique_ptr<formats::ModelFile> base,
                                                          const std::filesystem::path& adapter,
                                                          const MergeOptions& options);

}  // namespace candor::merge
