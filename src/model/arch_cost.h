#pragma once
// What an architecture costs: its weights by how often they are read, what a row's attention computes and reads, and
// the work of a prompt, of a step that decodes, and of a loop that keeps no K/V. A product of a matrix and a row counts
// two operations for each weight; norms, rotations, activations and softmax, a few percent together, are left out.
// Latent attention is counted as it is computed here, in the latent's width; of experts, those that rows are routed to,
// as if all were chosen alike; recurrent layers by their delta rule. Pure functions; any thread.

#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/cost.h"
#include "tensor/dtype.h"

namespace candor::model {

// Weights, or their bytes, by how often they are read.
struct WeightSums {
  double dense = 0;    // for every row
  double head = 0;     // for rows whose logits are wanted
  double experts = 0;  // for every row n_used of n_experts
  double tables = 0;   // one row of each

  double total() const { return dense + head + experts + tables; }
};

// Blocks whose attention is alike.
struct AttentionShape {
  double n_blocks = 0;
  double pair_flops = 0;      // of a row and a position that it sees: all heads of one block
  double position_bytes = 0;  // K/V of a position that one block reads
  double kept_bytes = 0;      // and keeps: none where it reads another block's
  double window = 0;          // positions that a row sees at most; 0 = all before it
};

struct ArchCost {
  WeightSums parameters;
  WeightSums bytes;
  Arithmetic arithmetic = Arithmetic::kBf16;  // of most products of a row
  double n_experts = 1, n_used = 1;
  std::vector<AttentionShape> attention;
  double state_flops = 0;  // of recurrent blocks, for a row
  double state_bytes = 0;  // of a sequence

  // Of weights, those that a row is multiplied with.
  double used(const WeightSums& weights) const {
    return weights.dense + weights.head + weights.experts * n_used / n_experts;
  }
  double used_parameters() const { return used(parameters); }
  // The share of all bytes of weights that a step of n_rows rows reads.
  double read_share(double n_rows) const;
  double kv_bytes_per_token() const;
};

// Shapes alone: no biases, no norms. K/V of 2 bytes; every weight of bits_per_weight: up to 9 are int8's arithmetic, up
// to 16 bf16's.
ArchCost cost_of(const ArchSpec& spec, double bits_per_weight);
// Every weight of a file that is computed with, in the file's own types.
Result<ArchCost> cost_of(const formats::ModelFile& file, const ArchSpec& spec);

struct Work {
  double matrix_flops = 0;
  double attention_flops = 0;
  double state_flops = 0;
  double read_bytes = 0;  // of weights, K/V and states, each once a step

  double flops() const { return matrix_flops + attention_flops + state_flops; }
};

// Bytes of weights that a step of n_rows rows reads.
double weights_read(const ArchCost& cost, double n_rows);
// How many positions rows [n_past, n_past + n_rows) of a sequence see together, themselves included.
double seen_positions(double n_past, double n_rows, double window);

// n_batch prompts, and the logits of their last rows.
Work prefill_work(const ArchCost& cost, double n_prompt, double n_batch);
// One row of each of n_batch sequences that have n_past tokens behind them.
Work decode_work(const ArchCost& cost, double n_past, double n_batch);
// n_new tokens where each computes all before it again.
Work naive_work(const ArchCost& cost, double n_prompt, double n_new, double n_batch);

// A lower bound of the time: that of the arithmetic or of the reading, whichever takes longer.
double work_seconds(const Work& work, const Hardware& hardware);

}  // namespace candor::model
