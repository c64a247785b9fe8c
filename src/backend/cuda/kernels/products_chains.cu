// Products of F32 and F16 weights: one chain over k for each output and row, by one thread. All threads of a block
// bring the panel through shared memory, some stages ahead.

#include "backend/cuda/kernels/product_launch.h"
#include "backend/cuda/kernels/product_place.h"

namespace candor::backend::cuda {

namespace {

struct F32Weights {
  using Stored = float;
  static CANDOR_DEVICE float value(float w) { return w; }
};
struct F16Weights {
  using Stored = uint16_t;
  static CANDOR_DEVICE float value(uint16_t w) { return half_to_number(w); }
};

template <class Weights>
struct PanelStages {
  using Stored = typename Weights::Stored;
  static constexpr int32_t kDepth = kChainStageBytes / (kPanelRows * static_cast<int32_t>(sizeof(Stored)));  // k

  const uint8_t* panel;
  int64_t n_bytes;
  int32_t output;  // of this thread
  Shared<Stored> stages;

  // Begins to copy a stage; each thread copies 16 bytes.
  CANDOR_DEVICE void begin(int32_t stage) const {
    const int64_t at = int64_t{kChainStageBytes} * stage + 16 * thread();
    if (at < n_bytes) {
      copy_async16(stages,
                   (static_cast<size_t>(stage % kChainStages * kChainStageBytes) + 16 * thread()) / sizeof(Stored),
                   panel + at);
    }
    commit_async();
  }
  CANDOR_DEVICE float weight(int32_t stage, int32_t k) const {
    const auto at = static_cast<size_t>(
        stage % kChainStages * (kChainStageBytes / static_cast<int32_t>(sizeof(Stored))) + k * kPanelRows + output);
    const Stored stored = stages[at];
    return Weights::value(stored);
  }
};

// The products of a stage. x: the row, from the stage's first k on.
template <class Weights>
CANDOR_DEVICE float add_stage(const PanelStages<Weights>& panel, int32_t stage, int32_t n_k, const float* x,
                              float sum) {
  int32_t k = 0;
  for (; k + 4 <= n_k; k += 4) {
    const Uint4 four = load16(x + k);
    sum = fma_rn(float_of(four.x), panel.weight(stage, k), sum);
    sum = fma_rn(float_of(four.y), panel.weight(stage, k + 1), sum);
    sum = fma_rn(float_of(four.z), panel.weight(stage, k + 2), sum);
    sum = fma_rn(float_of(four.w), panel.weight(stage, k + 3), sum);
  }
  for (; k < n_k; ++k) sum = fma_rn(x[k], panel.weight(stage, k), sum);
  return sum;
}

template <class Weights>
CANDOR_DEVICE void multiply_chains(const ProductArgs& args) {
  using Stages = PanelStages<Weights>;
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kChainRows, kChainRows);
  if (place.n_rows <= 0) return;
  using Stored = typename Weights::Stored;
  const Stages panel{place.panel, int64_t{args.n_in} * kPanelRows * static_cast<int64_t>(sizeof(Stored)),
                     static_cast<int32_t>(thread()) % kPanelRows, shared<Stored>(0)};
  const int32_t row = static_cast<int32_t>(thread()) / kPanelRows;
  const auto* x = reinterpret_cast<const float*>(place.row(row));
  const int32_t n_stages = (args.n_in + Stages::kDepth - 1) / Stages::kDepth;
  for (int32_t stage = 0; stage < kChainStages - 1; ++stage) panel.begin(stage);
  float sum = 0.0f;
  for (int32_t stage = 0; stage < n_stages; ++stage) {
    wait_async<kChainStages - 2>();
    sync_block();
    panel.begin(stage + kChainStages - 1);
    const int32_t first = Stages::kDepth * stage;
    const int32_t n_k = args.n_in - first < Stages::kDepth ? args.n_in - first : Stages::kDepth;
    if (row < place.n_rows) sum = add_stage<Weights>(panel, stage, n_k, x + first, sum);
  }
  wait_async<0>();
  store_result(place, row, panel.output, sum);
}

}  // namespace

CANDOR_BOUNDED_KERNEL(product_f32, ProductArgs, kFewThreads, 4) {
  multiply_chains<F32Weights>(args);
}
CANDOR_BOUNDED_KERNEL(product_f16, ProductArgs, kFewThreads, 4) {
  multiply_chains<F16Weights>(args);
}

}  // namespace candor::backend::cuda
