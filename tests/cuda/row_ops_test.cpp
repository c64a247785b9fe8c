// Operations that work row by row, on the emulated device and on the CPU: 0 bits differ.

#include <gtest/gtest.h>

#include <functional>

#include "cuda/emulated.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::GateKind;
using backend::NormKind;
using backend::RopePairs;
using backend::RopeSpec;
using backend::WeightRole;

constexpr int32_t kRows = 11;
constexpr int32_t kCols = 90;  // not a multiple of 16

// A program on slots 0 and 1, which hold random numbers, large and small ones, zeros, and an infinity: 3e38 * 1.5.
using Program = std::function<Activation(Rig&, Activation, Activation)>;

std::vector<float> odd_values(uint64_t seed) {
  std::vector<float> values = random_values(static_cast<size_t>(kRows) * kCols, seed, 3.0f);
  constexpr float kOdd[] = {0.0f, -0.0f, 1e-39f, -1e30f, 90.0f, -90.0f, 7.5f, 3e38f};
  for (size_t i = 0; i < std::size(kOdd); ++i) values[seed + 37 * i] = kOdd[i];
  return values;
}

void expect_equal(const Program& program) {
  expect_equal_bits([&](Rig& rig) {
    const auto& first = rig.upload_rows(odd_values(1), kCols);
    const auto& second = rig.upload_rows(odd_values(2), kCols);
    rig.reserve(3, kCols, kRows);
    const Activation x{0, kRows, kCols};
    const Activation y{1, kRows, kCols};
    return rig.run(kRows, [&] {
      rig.ops().run(op::Embed{x, &first, 1.5f});
      rig.ops().run(op::Embed{y, &second, 1.0f});
      return program(rig, x, y);
    });
  });
}

const backend::Weight& vector(Rig& rig, size_t n, uint64_t seed) {
  const OwnedTensor tensor = tensor_of("vector", DType::kF32, {static_cast<int64_t>(n)}, random_values(n, seed));
  return rig.upload(tensor.view(), WeightRole::kVector);
}

TEST(row_ops, norms) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    for (const bool has_gains : {true, false}) {
      expect_equal([&](Rig& rig, Activation x, Activation) {
        const auto& gain = vector(rig, kCols, 3);
        const auto* bias = kind == NormKind::kLayer ? &vector(rig, kCols, 4) : nullptr;
        rig.ops().run(op::Norm{{2, kRows, kCols}, x, {has_gains ? &gain : nullptr, bias}, {kind, 1e-5f}});
        return Activation{2, kRows, kCols};
      });
    }
  }
}

TEST(row_ops, norms_of_heads_with_gains_in_turn) {
  expect_equal([&](Rig& rig, Activation x, Activation) {
    const Activation heads{x.slot, kRows * 6, kCols / 6};
    rig.ops().run(op::Norm{heads, heads, vector(rig, kCols / 2, 3), {}});
    return x;
  });
}

TEST(row_ops, gates_and_activations) {
  for (int kind = 0; kind < backend::kGateKinds; ++kind) {
    expect_equal([&](Rig& rig, Activation x, Activation y) {
      rig.ops().run(op::Gate{x, x, y, static_cast<GateKind>(kind)});
      return x;
    });
    if (static_cast<GateKind>(kind) == GateKind::kClampedSilu) continue;
    expect_equal([&](Rig& rig, Activation x, Activation) {
      rig.ops().run(op::Activate{x, static_cast<GateKind>(kind)});
      return x;
    });
  }
}

TEST(row_ops, sums_bounds_and_scales) {
  expect_equal([](Rig& rig, Activation x, Activation y) {
    rig.ops().run(op::Add{x, y, 0.3f});
    rig.ops().run(op::AddGated{x, y, {1, kRows, 1}});
    rig.ops().run(op::Scale{x, 1.7f, &vector(rig, 1, 5)});
    rig.ops().run(op::Clamp{x, x, -2.0f, 50.0f});
    rig.ops().run(op::Temper{x, {0.1f, 3, 1}});
    return x;
  });
}

TEST(row_ops, pieces_and_columns) {
  expect_equal([](Rig& rig, Activation x, Activation) {
    const Activation first{1, kRows, 60};
    const Activation second{2, kRows, 30};
    rig.ops().run(op::Unzip{first, second, x, 20});
    rig.ops().run(op::Zip{x, first, second, 10});
    rig.ops().run(op::Columns{{2, kRows, 17}, x, 40});
    return Activation{2, kRows, 17};
  });
}

TEST(row_ops, rotation) {
  for (const RopePairs pairs : {RopePairs::kInterleaved, RopePairs::kHalves}) {
    expect_equal([&](Rig& rig, Activation x, Activation) {
      RopeSpec spec;
      spec.pairs = pairs;
      spec.n_dims = 12;
      rig.ops().run(op::Rope{x, 5, kCols / 5, &spec});
      return x;
    });
  }
}

TEST(row_ops, rows_of_tables) {
  expect_equal([](Rig& rig, Activation x, Activation) {
    rig.ops().run(op::AddPositions{x, &rig.upload_rows(odd_values(7), kCols)});
    rig.ops().run(op::AddTypes{x, &rig.upload_rows(random_values(2 * kCols, 8), kCols)});
    return x;
  });
}

TEST(row_ops, rows_that_begin_with_a_vector) {
  expect_equal_bits([](Rig& rig) {
    const auto& table = rig.upload_rows(odd_values(1), kCols);
    rig.reserve(1, kCols, kRows);
    const std::vector<float> wide = random_values(2 * kCols, 9);
    BatchBuilder builder;
    builder.add(std::vector<TokenId>{0, 1, 2, 3}, 0, std::vector<BlockId>{0});
    builder.vector(1, wide);
    builder.vector(3, wide);
    const Activation x{0, 4, kCols};
    return rig.run(builder.view(), [&] {
      rig.ops().run(op::Embed{.dst = x, .table = &table, .takes_vectors = true});
      rig.ops().run(op::AddVectors{x, kCols});
      return x;
    });
  });
}

TEST(row_ops, logits_are_scaled_and_capped) {
  expect_equal_bits([](Rig& rig) {
    const auto& table = rig.upload_rows(odd_values(1), kCols);
    rig.reserve(2, kCols, kRows);
    auto& kv = rig.kv(1, 1, 16, 1);
    BatchBuilder builder;
    builder.add(std::vector<TokenId>{0, 1, 2, 3}, 0, std::vector<BlockId>{0});
    backend::StepBatch batch = builder.view();
    const std::vector<int32_t> out_rows = {1, 3};
    batch.out_rows = out_rows;
    rig.backend().begin_step(batch, kv);
    rig.ops().run(op::Embed{{0, 4, kCols}, &table, 1.0f});
    rig.ops().run(op::Gather{{1, 2, kCols}, {0, 4, kCols}});
    rig.ops().run(op::Collect{{1, 2, kCols}, {0.5f, 30.0f}});
    const backend::LogitsView view = rig.backend().read_logits(rig.backend().end_step());
    return std::vector<float>(view.data, view.data + 2 * kCols);
  });
}

}  // namespace
}  // namespace candor::testing
