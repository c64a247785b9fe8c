#pragma once
// The interface of a device that computes a model's layers: the CPU, a GPU or several. Code above it holds no pointer
// into its memory. One engine thread owns a Backend and its Ops: no method is thread-safe unless it says so.
//
// A step, a pass through the model for some tokens of some sequences: begin_step(batch, kv); any number of ops() in
// order; end_step(). What it computed stays where the backend has it until somebody reads it: read_logits(),
// device_logits(), read_rows(). Operations cannot fail: what can is done by upload, make_kv and reserve_arena.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/op_list.h"
#include "backend/op_specs.h"
#include "backend/split.h"
#include "backend/state_specs.h"
#include "backend/step_batch.h"
#include "base/error.h"
#include "base/ids.h"
#include "candor/info.h"
#include "candor/kv_type.h"
#include "tensor/tensor_view.h"

namespace candor::backend {

class DeviceLogits;  // device_logits.h

// How much of a layout a store holds.
struct KvSize {
  KvSize(int32_t blocks, int32_t states = 0) : n_blocks(blocks), n_states(states) {}
  int32_t n_blocks;
  int32_t n_states;  // slots of the recurrent state; used where the layout has one
};

// The memory of sequences: the pages of K and V, and slots for recurrent states. Owned by the engine, freed before the
// backend.
class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual const KvLayout& layout() const = 0;
  virtual int32_t n_blocks() const = 0;
  virtual int32_t n_states() const = 0;
  virtual size_t n_bytes() const = 0;
  // Copies the first n_tokens positions of block src to dst, all layers (copy-on-write of a shared block).
  virtual void copy_block(BlockId src, BlockId dst, int32_t n_tokens) = 0;
  // The memory of a block, of a state: what is kept elsewhere and brought back, by this kind of backend with a layout
  // that is equal. Empty where the host cannot reach it.
  virtual std::span<std::byte> block_memory(BlockId /*block*/) { return {}; }
  virtual std::span<std::byte> state_memory(StateId /*state*/) { return {}; }
  // The key of a token of a block, as attention reads it: [head_dim] of that layer. False where the host cannot reach
  // it.
  struct KeyPlace {
    BlockId block = 0;
    int32_t token = 0;  // of the block
    int32_t layer = 0;
    int32_t kv_head = 0;
  };
  virtual bool read_key(const KeyPlace& /*place*/, std::span<float> /*key*/) { return false; }
};

// Largest shape that each slot takes in any step.
struct ArenaLayout {
  std::vector<int32_t> slot_cols;    // [n_slots]
  std::vector<bool> slot_is_output;  // [n_slots]: holds at most max_out_rows rows instead of max_rows
  int32_t max_rows = 0;              // T
  int32_t max_out_rows = 0;
  int32_t max_input_cols = 0;  // widest source of a linear()
  int32_t max_positions = 0;   // for tables that positions index
};

struct BackendInfo {
  std::string name;         // "cpu", "reference"
  std::string description;  // "avx512-vnni, 2 threads"
  int32_t n_threads = 1;
  KvType default_kv = KvType::kBf16;
  int32_t n_ranks = 1;         // that share each model
  int32_t n_ranks_here = 1;    // of those, on this computer
  RowKinds rows{};             // that its operations know
  uint64_t device_bytes = 0;   // of a device's own memory; 0: it computes in the host's
  uint64_t free_bytes = 0;     // of them, when it was opened
  bool uses_host_too = false;  // beside a device's memory, for a part of the model
  std::string note{};          // why it is this one and not what was tried before; often nothing
};

struct StepTicket {
  int64_t id = 0;
};

// [n_out, V] f32, rows in the order of StepBatch::out_rows. Readable by the host until the next begin_step.
struct LogitsView {
  const float* data = nullptr;
  int32_t n_rows = 0;
  int32_t n_vocab = 0;
  std::span<const float> row(int32_t i) const {
    return {data + static_cast<size_t>(i) * static_cast<size_t>(n_vocab), static_cast<size_t>(n_vocab)};
  }
};

// Rows of an activation, readable by the host until the next begin_step.
struct RowsView {
  const float* data = nullptr;
  int32_t n_rows = 0;
  int32_t n_cols = 0;
  std::span<const float> row(int32_t i) const {
    return {data + static_cast<size_t>(i) * static_cast<size_t>(n_cols), static_cast<size_t>(n_cols)};
  }
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendInfo& info() const = 0;
  // Packs a copy of the tensor for its role. The view may be unmapped afterwards. kVector weights: [n] of F32, F16,
  // BF16.
  virtual Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) = 0;
  virtual Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) = 0;
  virtual Result<void> reserve_arena(const ArenaLayout& layout) = 0;

  // Bytes that upload() and reserve_arena() would take, without taking them. upload_bytes() refuses what upload() would
  // refuse by type and shape, and reads no weight.
  virtual Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const = 0;
  virtual uint64_t arena_bytes(const ArenaLayout& layout) const = 0;

  virtual Ops& ops() = 0;
  // REQUIRES: batch.n_rows() <= max_rows; every position < max_positions; the blocks that the rows touch are in the
  // table; info().rows knows batch.kinds().
  virtual void begin_step(const StepBatch& batch, KvStore& kv) = 0;
  virtual StepTicket end_step() = 0;
  // The ticket is the handle of a step's logits: waits until they are computed, and brings them to the host.
  virtual LogitsView read_logits(StepTicket ticket) = 0;
  // The same without waiting, where a device has them; nullptr: there are none, or they are on the host.
  virtual DeviceLogits* device_logits(StepTicket /*ticket*/) { return nullptr; }
  // An activation is the handle of its rows: what the last operation left in its slot, brought to the host.
  virtual RowsView read_rows(Activation x) = 0;
  // Rows of an activation from the host, [n_rows * n_cols], within a step: for the operations that come next. REQUIRES:
  // not a backend of ranks.
  virtual void write_rows(Activation x, std::span<const float> rows) {
    float* place = host_rows(x);
    CANDOR_CHECK(place != nullptr);
    std::ranges::copy(rows, place);
  }

  // What follows is for ranks or devices that share a model; a backend that computes alone has no use for it.

  // upload(), of which each rank keeps its part. The bytes are those of all ranks of this computer.
  virtual Result<std::unique_ptr<Weight>> upload_split(const TensorView& tensor, WeightRole role, const WeightSplit&) {
    return upload(tensor, role);
  }
  virtual Result<uint64_t> upload_split_bytes(const TensorView& tensor, WeightRole role, const WeightSplit&) const {
    return upload_bytes(tensor, role);
  }
  // Memory of one block of a store, of all ranks of this computer.
  virtual int64_t kv_block_bytes(const KvLayout& layout) const { return kv_pool_block_bytes(layout); }
  // Behind a model's last weight. Its number; refused where another rank has another content.
  virtual Result<int32_t> add_model(uint64_t /*content_hash*/) { return 0; }
  // What the step runs that begins next.
  virtual void begin_pass(const Pass&) {}
  // Measured for a moment, with memory of its own; 0: unknown.
  virtual double read_bytes_per_s() { return 0.0; }
  // Why what is computed from now on means nothing, where that is so. Any thread.
  virtual Result<void> health() const { return {}; }
  virtual RankTraffic rank_traffic() const { return {}; }
  // Of a device with memory of its own. Any thread.
  virtual DeviceStats device_stats() const { return {}; }
  // An activation's own memory, [n_rows, n_cols], while operations are done when they return; else nullptr.
  virtual float* host_rows(Activation) { return nullptr; }
};

}  // namespace candor::backend
