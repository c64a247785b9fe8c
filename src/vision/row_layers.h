#pragma once
// A few layers over rows that do not see one another: an image's patches on their way into a tower, or a projector.
// Described as data; computed by a backend. One thread owns it, the one that owns the backend.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "base/error.h"
#include "formats/model_file.h"

namespace candor::vision {

// A norm without a name has no gains. kAddPositions: row t += weight[t]. Linear: weight is [out, in]; its bias may be
// absent in the file.
// kGate: act(weight x) * (up x), both [out, in].
enum class RowLayerKind : uint8_t { kNorm, kLinear, kActivate, kAddPositions, kGate };
struct RowLayer {
  RowLayerKind kind = RowLayerKind::kLinear;
  std::string weight{};  // names of tensors
  std::string bias{};
  int32_t n_out = 0;
  backend::NormSpec norm{};
  backend::GateKind act = backend::GateKind::kGelu;
  std::string up{};
  bool operator==(const RowLayer&) const = default;
};

// What the layers make of rows n_in wide.
struct RowLayersSpec {
  int32_t n_in = 0;
  std::vector<RowLayer> layers{};
  int32_t n_out() const;
  bool operator==(const RowLayersSpec&) const = default;
};

class RowLayers {
 public:
  // Refuses a tensor that is missing or of another shape, by its name. The backend is borrowed.
  static Result<RowLayers> load(const formats::ModelFile& file, RowLayersSpec spec, backend::Backend& backend);
  // Bytes that load() will take.
  static Result<uint64_t> planned_bytes(const formats::ModelFile& file, const RowLayersSpec& spec,
                                        const backend::Backend& backend);

  // Of the arena, for so many rows at once.
  static backend::ArenaLayout arena_layout(const RowLayersSpec& spec, int32_t max_rows);

  // rows: [n_rows, n_in]. The result, [n_rows, n_out], is the backend's until its next step. REQUIRES: the arena was
  // reserved for n_rows.
  backend::RowsView run(std::span<const float> rows, int32_t n_rows, backend::Backend& backend, backend::KvStore& kv);

  size_t weight_bytes() const;

 private:
  struct Weights {
    std::unique_ptr<backend::Weight> weight;
    std::unique_ptr<backend::Weight> bias;
    std::unique_ptr<backend::Weight> up;
  };

  RowLayersSpec spec_;
  std::vector<Weights> weights_;  // of each layer
  // Of a step; as many as its rows.
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
};

}  // namespace candor::vision
