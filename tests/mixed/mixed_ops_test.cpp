// Operations on two sides, without a model.

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "backend/wrap/forwarding_backend.h"
#include "mixed/random_program.h"

namespace candor::testing::mixed {
namespace {

TEST(mixed_ops, random_programs_leave_the_bits_of_one_backend) {
  expect_same_bits(make_slow_cpu(), true, 200);
}

// The rows of a product that are left over from one on the other side.
TEST(mixed_ops, rows_whose_beginning_is_of_the_other_side_are_put_together) {
  Bench two(make_two_sides(in_turn()));
  Bench one(make_fast_cpu());
  for (Bench* bench : {&one, &two}) {
    const Weights weights = upload_all(*bench, true);
    const Activation src{0, kRows, kCols};
    bench->run(op::Linear{std::array{LinearTerm{weights.square[0], nullptr, {1, kRows, kCols}}}, src});
    bench->run(op::Linear{std::array{LinearTerm{weights.square[1], nullptr, {1, 2, kCols}}}, {0, 2, kCols}});
    bench->run(op::Linear{std::array{LinearTerm{weights.square[0], nullptr, {2, kRows, kCols}}}, {1, kRows, kCols}});
    bench->backend().end_step();
  }
  expect_same_slots(one, two, "at the end");
}

TEST(mixed_ops, a_product_whose_terms_are_on_both_sides_may_overwrite_its_input) {
  Bench two(make_two_sides(in_turn()));
  Bench one(make_fast_cpu());
  for (Bench* bench : {&one, &two}) {
    const Weights weights = upload_all(*bench, true);
    const Activation src{0, kRows, kCols};
    const LinearTerm over{weights.square[0], nullptr, src};
    const LinearTerm other{weights.square[1], nullptr, {1, kRows, kCols}};
    bench->run(op::Linear{std::array{over, other}, src});
    bench->backend().end_step();
  }
  expect_same_slots(one, two, "at the end");
}

// Both sides have the logits when they are scaled on one.
TEST(mixed_ops, logits_are_read_as_they_were_collected) {
  Bench two(make_two_sides(in_turn()));
  Bench one(make_fast_cpu());
  for (Bench* bench : {&one, &two}) {
    const Weights weights = upload_all(*bench, true);
    const Activation logits{0, kRows, kCols};
    const auto read_on = [&](size_t side, int32_t dst) {
      bench->run(op::Linear{std::array{LinearTerm{weights.square[side], nullptr, {dst, kRows, kCols}}}, logits});
    };
    read_on(0, 1);
    read_on(1, 2);
    bench->run(op::Collect{logits, {.scale = 0.5f}});
    read_on(0, 3);
    bench->backend().end_step();
  }
  expect_same_slots(one, two, "at the end");
}

// What waits runs where the least has to cross: the sum before the norm behind a product, and nothing but its result.
TEST(mixed_ops, between_two_sides_one_row_crosses) {
  Bench bench(make_two_sides(in_turn()));
  const auto& both = static_cast<MixedBackend&>(bench.backend());
  const Weights weights = upload_all(bench, true);
  const Activation x{0, 1, kCols};
  const Activation h{1, 1, kCols};
  const Activation out{2, 1, kCols};
  bench.run(op::Linear{std::array{LinearTerm{weights.square[0], nullptr, h}}, x});
  bench.run(op::Linear{std::array{LinearTerm{weights.square[0], nullptr, x}}, h});
  const backend::mixed::Crossings before = both.crossings();
  bench.run(op::Linear{std::array{LinearTerm{weights.square[0], nullptr, h}}, x});
  bench.run(op::Add{x, h, 1.0f});
  bench.run(op::Norm{h, x, backend::NormWeights(*weights.gain), {}});
  bench.run(op::Linear{std::array{LinearTerm{weights.square[1], nullptr, out}}, h});
  bench.run(op::Add{x, out, 1.0f});
  bench.backend().end_step();
  EXPECT_EQ(both.crossings().n_copies - before.n_copies, 1);
  EXPECT_EQ(both.crossings().n_bytes - before.n_bytes, kCols * sizeof(float));
}

// A device that fails at any moment is seen by its backend alone.
class IllBackend final : public backend::ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  Result<void> health() const override { return fail(ErrorKind::kInternal, "the card is lost"); }
  Result<std::unique_ptr<Weight>> upload(const TensorView&, WeightRole) override {
    return fail(ErrorKind::kOutOfMemory, "the card is full");
  }
};

TEST(mixed_backend, what_one_side_refuses_is_refused_and_its_error_is_the_backend_s) {
  backend::MixedBackend both(std::make_unique<IllBackend>(make_slow_cpu()), make_fast_cpu());
  EXPECT_EQ(both.health().error().message, "the card is lost");
  const OwnedTensor tensor = random_tensor("w", DType::kF32, {16, kCols}, 2);
  EXPECT_EQ(both.upload(tensor.view(), WeightRole::kLinear).error().message, "the card is full");
  both.place_next(backend::Placement::all_on(Side::kHost));
  EXPECT_TRUE(both.upload(tensor.view(), WeightRole::kLinear));
  const OwnedTensor vector = random_tensor("v", DType::kF32, {kCols}, 2);
  EXPECT_EQ(both.upload(vector.view(), WeightRole::kVector).error().message, "the card is full");
}

}  // namespace
}  // namespace candor::testing::mixed
