#include "backend/wrap/timed_backend.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace candor::backend {
namespace {

class FakeWeight final : public Weight {
 public:
  int64_t n_rows() const override { return 10; }
  int64_t n_cols() const override { return 4; }
  size_t n_bytes() const override { return 160; }
};

class FakeKv final : public KvStore {
 public:
  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return 1; }
  int32_t n_states() const override { return 0; }
  size_t n_bytes() const override { return 1; }
  void copy_block(BlockId, BlockId, int32_t) override {}

 private:
  KvLayout layout_;
};

// Every operation takes 7 ns.
class FakeOps final : public Ops {
 public:
  explicit FakeOps(obs::ManualClock& clock) : clock_(clock) {}
  void run(const Op& operation) override {
    Operands operands;
    describe(operation, operands);
    calls.emplace_back(operands.name);
    clock_.advance_ns(7);
  }
  std::vector<std::string> calls;

 private:
  obs::ManualClock& clock_;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(obs::ManualClock& clock) : ops_(clock) {}
  const BackendInfo& info() const override { return info_; }
  Result<std::unique_ptr<Weight>> upload(const TensorView&, WeightRole) override {
    return std::make_unique<FakeWeight>();
  }
  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout&, KvSize) override { return std::make_unique<FakeKv>(); }
  Result<void> reserve_arena(const ArenaLayout&) override { return {}; }
  Result<uint64_t> upload_bytes(const TensorView&, WeightRole) const override { return 1; }
  uint64_t arena_bytes(const ArenaLayout&) const override { return 2; }
  Ops& ops() override { return ops_; }
  void begin_step(const StepBatch&, KvStore&) override {}
  StepTicket end_step() override { return {3}; }
  LogitsView read_logits(StepTicket ticket) override { return {nullptr, static_cast<int32_t>(ticket.id), 0}; }
  RowsView read_rows(Activation x) override { return {nullptr, x.n_rows, x.n_cols}; }
  FakeOps& fake() { return ops_; }

 private:
  BackendInfo info_{.name = "fake", .description = {}, .n_threads = 1, .default_kv = KvType::kBf16};
  FakeOps ops_;
};

TEST(timed_backend, operations_pass_through_and_are_counted_by_kind) {
  obs::ManualClock clock;
  auto inner = std::make_unique<FakeBackend>(clock);
  FakeOps& fake = inner->fake();
  TimedBackend timed(std::move(inner), clock);
  const FakeWeight weight;
  Ops& ops = timed.ops();
  const Activation x{0, 2, 4};
  const LinearTerm terms[] = {{&weight, nullptr, x}, {&weight, &weight, x}};

  ops.run(op::Embed{x, &weight});
  ops.run(op::AddPositions{x, &weight});
  ops.run(op::Norm{x, x, weight});
  ops.run(op::Linear{terms, x});
  ops.run(op::Linear{terms, x});
  const RopeSpec rope;
  ops.run(op::Rope{x, 1, 4, &rope});
  const AttnSpec attn;
  ops.run(op::Attend{x, {x, x, x}, &attn});
  ops.run(op::Gate{x, x, x});
  ops.run(op::Activate{x, GateKind::kGelu});
  const Expert experts[] = {{&weight, &weight, &weight}};
  MoeTerm mixture;
  mixture.experts = experts;
  mixture.spec.n_used = 1;
  ops.run(op::Moe{x, x, mixture});
  ops.run(op::Add{x, x});
  ops.run(op::Gather{x, x});
  ops.run(op::Collect{x});

  EXPECT_EQ(fake.calls, (std::vector<std::string>{"embed", "add_positions", "norm", "linear", "linear", "rope",
                                                  "attend", "gate", "activate", "moe", "add", "gather", "collect"}));
  EXPECT_EQ(timed.times().of(OpKind::kLinear).n_calls, 2);
  EXPECT_EQ(timed.times().of(OpKind::kLinear).ns, 14);
  EXPECT_EQ(timed.times().of(OpKind::kLinear).weight_bytes, 2u * 3 * 160);
  EXPECT_EQ(timed.times().of(OpKind::kEmbed).weight_bytes, 2u * 2 * 16);
  EXPECT_EQ(timed.times().of(OpKind::kMoe).weight_bytes, 3u * 160);
  EXPECT_EQ(timed.times().total().n_calls, 13);
  EXPECT_EQ(timed.times().total().ns, 91);
  timed.times().clear();
  EXPECT_EQ(timed.times().total().n_calls, 0);
  EXPECT_EQ(op_name(OpKind::kCollect), "collect");
}

TEST(timed_backend, unmeasured_operations_are_the_inner_backends_own) {
  obs::ManualClock clock;
  auto inner = std::make_unique<FakeBackend>(clock);
  Ops* own = &inner->ops();
  TimedBackend timed(std::move(inner), clock);
  EXPECT_NE(&timed.ops(), own);
  timed.measure(false);
  EXPECT_EQ(&timed.ops(), own);
  timed.measure(true);
  EXPECT_NE(&timed.ops(), own);
}

TEST(timed_backend, everything_else_is_the_inner_backends) {
  obs::ManualClock clock;
  TimedBackend timed(std::make_unique<FakeBackend>(clock), clock);
  EXPECT_EQ(timed.info().name, "fake");
  EXPECT_TRUE(timed.upload({}, WeightRole::kLinear));
  EXPECT_TRUE(timed.make_kv({}, 1));
  EXPECT_TRUE(timed.reserve_arena({}));
  EXPECT_EQ(timed.end_step().id, 3);
  EXPECT_EQ(timed.read_logits({3}).n_rows, 3);
}

}  // namespace
}  // namespace candor::backend
