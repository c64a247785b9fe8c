// A step's operations as data: run again over the same batch they give the same bits, on any backend.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "backend/wrap/recording_backend.h"
#include "conformance/rig.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::LinearTerm;
using backend::RecordingBackend;

constexpr int32_t kStepRows = 5, kStepCols = 32;

// A product, attention over itself, and the way out, of the tokens 0, 1, ...
class Recorded {
 public:
  explicit Recorded(std::unique_ptr<backend::Backend> inner) : Recorded(wrap(std::move(inner))) {}
  RecordingBackend& backend() { return *recording_; }

  std::vector<float> step(const std::function<void()>& body) {
    return rig_.run(kStepRows, [&] {
      body();
      return kOut;
    });
  }
  void forward() {
    backend::Ops& ops = rig_.ops();
    ops.run(op::Embed{kX, &table_, 1.0f});
    const LinearTerm terms[] = {{&weight_, nullptr, kQ}, {&weight_, nullptr, kK}};
    ops.run(op::Linear{terms, kX});
    ops.run(op::Rope{kQ, 1, kStepCols, &attn_.rope});
    ops.run(op::Attend{kOut, {kQ, kK, kX, 0}, &attn_});
  }
  Rig& rig() { return rig_; }

 private:
  static constexpr Activation kX{0, kStepRows, kStepCols}, kQ{1, kStepRows, kStepCols}, kK{2, kStepRows, kStepCols},
      kOut{3, kStepRows, kStepCols};
  static std::unique_ptr<RecordingBackend> wrap(std::unique_ptr<backend::Backend> inner) {
    return std::make_unique<RecordingBackend>(std::move(inner));
  }
  explicit Recorded(std::unique_ptr<RecordingBackend> backend)
      : recording_(backend.get()),
        rig_(std::move(backend)),
        table_(rig_.upload_rows(random_values(size_t{kStepRows} * kStepCols, 3), kStepCols)),
        weight_(rig_.upload_rows(random_values(size_t{kStepCols} * kStepCols, 4), kStepCols)) {
    rig_.reserve(4, kStepCols, kStepRows);
    rig_.kv(1, 1, kStepCols, 1);
    attn_.n_heads = attn_.n_kv_heads = 1;
    attn_.head_dim = kStepCols;
    attn_.scale = 0.2f;
    attn_.rope.n_dims = kStepCols;
  }

  RecordingBackend* recording_;
  Rig rig_;
  const backend::Weight& table_;
  const backend::Weight& weight_;
  backend::AttnSpec attn_;
};

void expect_replay_gives_the_same(std::unique_ptr<backend::Backend> inner) {
  Recorded recorded(std::move(inner));
  recorded.backend().record(true);
  const std::vector<float> wanted = recorded.step([&] { recorded.forward(); });
  recorded.backend().record(false);
  const backend::RecordedStep& step = recorded.backend().step();
  EXPECT_EQ(step.operations().size(), 5u);  // the rig collects
  const std::vector<float> again = recorded.step([&] { step.replay(recorded.rig().ops()); });
  EXPECT_EQ(first_difference(again, wanted), -1);
}

TEST(recorded_conformance, replayed_operations_give_the_same_bits) {
  expect_replay_gives_the_same(backend::make_reference_backend());
  auto cpu = backend::make_cpu_backend({.n_threads = 2});
  ASSERT_TRUE(cpu);
  expect_replay_gives_the_same(std::move(*cpu));
}

TEST(recorded_conformance, a_step_is_shown_as_a_line_for_each_operation) {
  Recorded recorded(backend::make_reference_backend());
  recorded.step([&] { recorded.forward(); });
  EXPECT_TRUE(recorded.backend().step().lines().empty()) << "nothing was asked for";
  recorded.backend().record(true);
  recorded.step([&] { recorded.forward(); });
  recorded.step([&] { recorded.forward(); });
  EXPECT_EQ(recorded.backend().step().lines(), (std::vector<std::string>{
                                                   "embed         -> x0 [5, 32]  weights 640 B",
                                                   "linear        x0 [5, 32] -> x1 [5, 32], x2 [5, 32]  weights 8192 B",
                                                   "rope          x1 [5, 32] -> x1 [5, 32]",
                                                   "attend        x1 [5, 32], x2 [5, 32], x0 [5, 32] -> x3 [5, 32]",
                                                   "collect       x3 [5, 32]",
                                               }));
}

}  // namespace
}  // namespace candor::testing
