#pragma once
// A resampler (ResamplerSpec): rows of the model's own read those of a tile. Each block is two models of one block: one
// keeps keys and values of the tile's rows, the other is computed over the own rows, which stand behind them and see
// one another. One thread owns it, the one that owns the backend.
//
// Tensors: "resampler.query" [rows, D], "resampler.norm.weight", and of each block "resampler.blk.*." ln_kv, ln_q, ln2
// (gains of RMS norms), attn_q, attn_k, attn_v, attn_out, ffn_gate, ffn_up, ffn_down, each ".weight".

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/error.h"
#include "formats/model_file.h"
#include "model/model.h"
#include "vision/vision_spec.h"

namespace candor::vision {

class Resampler {
 public:
  static Result<std::unique_ptr<Resampler>> load(const formats::ModelFile& file, const ResamplerSpec& spec,
                                                 backend::Backend& backend);
  // Bytes that load() and run() over so many rows take, without the arena.
  static Result<uint64_t> planned_bytes(const formats::ModelFile& file, const ResamplerSpec& spec, int32_t n_rows,
                                        const backend::Backend& backend);
  // What run() over so many rows needs besides.
  static backend::ArenaLayout with_arena(const ResamplerSpec& spec, int32_t n_rows, backend::ArenaLayout layout);
  static bool reads(const ResamplerSpec& spec, std::string_view tensor);

  // rows: [n, D]. The result, [n_rows of the spec, D], is the backend's until its next step. REQUIRES: the arena has
  // room.
  Result<backend::RowsView> run(backend::RowsView rows, backend::Backend& backend);

  size_t n_bytes() const;

 private:
  struct Block {
    std::unique_ptr<model::Model> tile;
    std::unique_ptr<model::Model> own;
  };

  ResamplerSpec spec_;
  std::vector<float> queries_;  // [n_rows, D]
  std::vector<Block> blocks_;
  std::unique_ptr<backend::KvStore> kv_;
};

}  // namespace candor::vision
