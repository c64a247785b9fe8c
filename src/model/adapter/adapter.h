#pragma once
// An adapter's matrices in a backend, by the base model's weights that they belong to. Made and freed on the engine
// thread; constant in between; borrows the base model's weights.

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/op_terms.h"
#include "base/error.h"
#include "formats/model_file.h"
#include "model/adapter/adapter_file.h"
#include "model/arch_spec.h"
#include "model/weights.h"

namespace candor::model {

// What an adapter is put on.
struct AdapterBase {
  const ArchSpec& spec;
  const ModelWeights& weights;
};

// The base model's matrix that a part changes: of a head that is the embedding, this one.
const Binding& binding_of(const AdapterPart& part, const ArchSpec& spec, const std::vector<Binding>& bindings);
// Whether the adapter says something of the base model's matrices that these have to be read for.
bool reads_base(const AdapterFile& adapter);
// Lengths of the rows of W + scale * up down, for parts with magnitudes: what those are divided by. [parts], each [out]
// or empty. Refused: a base model whose W is not the one that the adapter's file has (but for what quantising changes).
// Any thread.
Result<std::vector<std::vector<float>>> row_lengths(const AdapterFile& adapter, const ArchSpec& spec,
                                                    const formats::ModelFile& base);

// Memory that upload() will take.
Result<uint64_t> upload_bytes(const AdapterFile& adapter, const ArchSpec& spec, const backend::Backend& backend);

class Adapter {
 public:
  // lengths: row_lengths().
  static Result<std::unique_ptr<Adapter>> upload(const AdapterFile& adapter,
                                                 std::span<const std::vector<float>> lengths, const AdapterBase& base,
                                                 backend::Backend& backend);

  // What it adds to products of a weight, its number and destination left open; nullptr: nothing.
  const backend::AdapterTerm* term_of(const backend::Weight* weight) const;
  const backend::AdapterTable* table_of(const backend::Weight* table) const;
  // The same of all experts of a block, by its first expert's weight `up`.
  std::span<const backend::ExpertAdapter> experts_of(const backend::Weight* first_up) const;

  size_t n_bytes() const { return n_bytes_; }

 private:
  Result<const backend::Weight*> keep(Result<WeightPtr> weight);
  Result<void> add_part(const AdapterPart& part, std::span<const float> lengths, const AdapterBase& base,
                        backend::Backend& backend);
  Result<void> add_gains(const AdapterPart& part, std::span<const float> lengths, const backend::WeightSplit& split,
                         backend::Backend& backend, backend::AdapterTerm& term);
  Result<void> add_table(const AdapterPart& part, const AdapterBase& base, backend::Backend& backend);

  std::vector<WeightPtr> weights_;
  size_t n_bytes_ = 0;
  std::unordered_map<const backend::Weight*, backend::AdapterTerm> terms_;
  std::unordered_map<const backend::Weight*, backend::AdapterTable> tables_;
  std::unordered_map<const backend::Weight*, std::vector<backend::ExpertAdapter>> experts_;
};

}  // namespace candor::model
