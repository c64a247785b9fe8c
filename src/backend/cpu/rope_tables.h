#pragma once
// cos and sin of rotary position embeddings for the rows of a step, for every rotary spec that the model uses: computed
// in double, rounded to f32, a function of the row's positions alone. The first use of a spec in a step fills its
// table; later layers find it.

#include <cstdint>
#include <vector>

#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {

struct RopeRows {
  const float* cos = nullptr;  // [T, n_dims / 2]
  const float* sin = nullptr;
};

class RopeTables {
 public:
  // Forgets the rows of the step before.
  void begin_step() { ++step_; }
  // Of the batch's rows. The result lives until the next begin_step().
  RopeRows rows(const RopeSpec& spec, const StepBatch& batch, platform::ThreadPool& pool);

 private:
  struct Table {
    RopeSpec spec;
    std::vector<double> frequencies;  // [n_dims / 2]
    std::vector<float> cos;
    std::vector<float> sin;
    uint64_t step = 0;
  };
  Table& find(const RopeSpec& spec);

  std::vector<Table> tables_;
  uint64_t step_ = 0;
};

}  // namespace candor::backend::cpu
