#pragma once
// A transformer ready to run: the architecture, its weights in a backend, and the one function that launches a step.
// Immutable after load() and reserve(); launch() belongs to the engine thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/step_batch.h"
#include "base/error.h"
#include "base/ids.h"
#include "formats/model_file.h"
#include "model/arch_cost.h"
#include "model/arch_spec.h"

namespace candor::model {

struct ModelWeights;  // model/weights.h
struct Family;        // model/families/families.h
class Adapter;        // model/adapter/adapter.h
class AdapterFile;
class AdaptedOps;

struct LoadOptions {
  // Called on the loading thread with the bytes packed so far and in all; may be empty.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress{};
  int64_t n_ctx = 0;  // the context that was asked for; 0 = the model's own
};

// Reads the architecture without touching a weight. Unknown families, and metadata that contradicts itself or the
// tensors' shapes, are refused by name.
Result<ArchSpec> read_arch(const formats::ModelFile& file);

// Rotates as a context of n_ctx positions is to be rotated; 0 = the model's own. A number that was asked for, never one
// that memory decided: bits depend on it.
void fit_context(ArchSpec& spec, int64_t n_ctx);

// Names of the families that read_arch() knows: "llama, ...".
std::string supported_families();

// What a model will take in a backend, known before a weight is read.
struct ModelPlan {
  ArchSpec spec;
  uint64_t weight_bytes = 0;
};

// Refuses everything that load() would refuse by metadata, names, shapes and types.
Result<ModelPlan> plan_model(const formats::ModelFile& file, const backend::Backend& backend, int64_t n_ctx = 0);

backend::KvLayout kv_layout(const ArchSpec& spec, KvType type);
// How keys and values are kept where nobody says it: as the backend has them, but as f32 where heads are normed and
// their scores are hardly scaled (Gemma 4), so that what bf16 rounds off a key would count for whole nats.
KvType usual_kv(const ArchSpec& spec, KvType of_backend);

// The same of a head (draft_head.h) in `file`, of a model of that architecture.
Result<ModelPlan> plan_head(const formats::ModelFile& file, const ArchSpec& model, const backend::Backend& backend);

// The arena of steps of at most max_rows rows and max_out_rows logit rows, at positions below max_positions (0: the
// model's own limit).
backend::ArenaLayout arena_layout(const ArchSpec& spec, int32_t max_rows, int32_t max_out_rows, int32_t max_positions);

// Memory of the weights of a part of a model (Model::load_part).
Result<uint64_t> planned_part_bytes(const formats::ModelFile& file, const Family& family, const ArchSpec& arch,
                                    const backend::Backend& backend);

class Model {
 public:
  // Binds every tensor of the file to its role (or lists it as ignored; an unknown tensor is an error) and uploads it.
  static Result<std::unique_ptr<Model>> load(const formats::ModelFile& file, backend::Backend& backend,
                                             const LoadOptions& options);
  // The head in the file (draft_head.h) for that model, whose embedding and output matrix it uses where it has none,
  // and which keeps from now on what the head reads of it: kept_rows(). The model outlives it.
  static Result<std::unique_ptr<Model>> load_head(const formats::ModelFile& file, Model& model,
                                                  backend::Backend& backend);
  // Blocks over rows that begin with vectors, and perhaps a last norm: all of the file's tensors, under the family's
  // names.
  static Result<std::unique_ptr<Model>> load_part(const formats::ModelFile& file, const Family& family, ArchSpec arch,
                                                  backend::Backend& backend);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ArchSpec& spec() const { return spec_; }
  size_t weight_bytes() const { return weight_bytes_; }
  int64_t n_parameters() const { return n_parameters_; }
  const ArchCost& cost() const { return cost_; }
  // Fingerprint of the architecture and of the weights' content; part of every prefix-cache key.
  uint64_t hash() const { return hash_; }
  backend::KvLayout kv_layout(KvType type) const;

  // Reserves the arena for steps of at most max_rows rows and max_out_rows logit rows, at positions below
  // max_positions (0: the model's own limit, which may be millions).
  Result<void> reserve(int32_t max_rows, int32_t max_out_rows, int32_t max_positions = 0);

  // Embeds, runs every block and the head. The logits of batch.out_rows come from backend.read_logits(ticket); where no
  // row wants logits the head does not run and there is nothing to read. REQUIRES: reserve() covered the batch.
  backend::StepTicket launch(const backend::StepBatch& batch, backend::KvStore& kv);
  // Parts of a step alone, with what was launched before them as their input, for their times. Blocks [first, end),
  // with the embedding where first is 0 and the head where end is the number of blocks; the attention of every block.
  backend::StepTicket launch_blocks(int32_t first, int32_t end, const backend::StepBatch& batch, backend::KvStore& kv);
  backend::StepTicket launch_attention(const backend::StepBatch& batch, backend::KvStore& kv);
  // Where the numbers of the step that was launched last, of this batch, first were not finite: "block 3 (tensors
  // blk.3.*)". For the message of an error: computes the step again up to there, to the same bits, and leaves logits
  // and hidden states as they are.
  std::string broken_part(const backend::StepBatch& batch, backend::KvStore& kv);
  // An adapter, for rows that use its number. lengths: row_lengths(). Engine thread.
  Result<AdapterId> add_adapter(const AdapterFile& adapter, std::span<const std::vector<float>> lengths);
  // Its number may become another one's. REQUIRES: no step uses it. Engine thread.
  void drop_adapter(AdapterId id);
  size_t adapter_bytes(AdapterId id) const;
  // [n_out, D]: what the head made logits of, behind the final norm (HeadSpec::gives_stream: in front of it). REQUIRES:
  // the step was waited for, and had n_out logit rows, at least one.
  backend::RowsView hidden(int32_t n_out) const;
  // The same of every row, where keep_rows() came before the step.
  void keep_rows() { keeps_rows_ = true; }
  backend::RowsView all_rows(int32_t n_rows) const;
  // Of every row, what a head reads of it: as all_rows(), or [n_rows, layers * D], the stream in front of some blocks.
  backend::RowsView kept_rows(int32_t n_rows) const;
  // Of every row, as the last block that was launched left it.
  backend::RowsView stream_rows(int32_t n_rows) const;

 private:
  Model(backend::Backend& backend, ArchSpec spec);
  backend::Ops& ops_for(const backend::StepBatch& batch);
  void run_embedding(backend::Ops& ops, backend::Activation x, const backend::StepBatch& batch);
  void join_vectors(backend::Ops& ops, backend::Activation x);
  void begin_with_vectors(backend::Ops& ops, backend::Activation x, int32_t n_cols);
  void keep_layer(backend::Ops& ops, int32_t layer, backend::Activation x);
  backend::Activation kept_layers(size_t n, int32_t n_rows) const;
  const ModelWeights& embedding_of() const;
  backend::Activation layer_inputs(int32_t n_rows) const;
  void run_layer_inputs(backend::Ops& ops, backend::Activation x);
  // What the head reads of models that guess masked words.
  backend::Activation guessing_rows(backend::Ops& ops, backend::Activation last);
  void run_head(backend::Ops& ops, backend::Activation x, int32_t n_out);

  // Constant after load().
  backend::Backend& backend_;
  ArchSpec spec_;
  std::unique_ptr<ModelWeights> weights_;
  const ModelWeights* outer_ = nullptr;  // whose embedding and output matrix it uses: its own, or another model's
  size_t weight_bytes_ = 0;
  int64_t n_parameters_ = 0;
  ArchCost cost_;
  uint64_t hash_ = 0;
  int32_t number_ = 0;  // in the backend
  bool keeps_rows_ = false;
  std::vector<int32_t> kept_layers_;  // the stream in front of these blocks, ascending

  std::vector<std::shared_ptr<const Adapter>> adapters_;  // by their numbers
  std::unique_ptr<AdaptedOps> adapted_ops_;
};

}  // namespace candor::model
