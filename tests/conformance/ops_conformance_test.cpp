// Operations that work row by row, and linear(), on cpu against reference. Bounds are stated where they are used.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "conformance/rig.h"
#include "kernels/packed_weight.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::GateKind;
using backend::NormKind;
using backend::NormSpec;
using backend::RopePairs;
using backend::RopeScaling;
using backend::RopeSpec;
using backend::WeightRole;

constexpr int32_t kRows = 37;
constexpr int32_t kCols = 160;

// The same program on both backends. body gets a rig whose slots 0 and 1 hold two random inputs [kRows, kCols].
using Program = std::function<Activation(Rig&, Activation, Activation)>;

std::vector<float> run_program(Rig rig, const Program& program) {
  const auto& first = rig.upload_rows(random_values(kRows * kCols, 1), kCols);
  const auto& second = rig.upload_rows(random_values(kRows * kCols, 2), kCols);
  rig.reserve(3, kCols, kRows);
  const Activation x{0, kRows, kCols};
  const Activation y{1, kRows, kCols};
  return rig.run(kRows, [&] {
    rig.ops().run(op::Embed{x, &first, 1.0f});
    rig.ops().run(op::Embed{y, &second, 1.0f});
    return program(rig, x, y);
  });
}

// Differences are at most `relative` of the value plus `absolute`.
void expect_close(const Program& program, float relative, float absolute) {
  const std::vector<float> wanted = run_program(reference_rig(), program);
  for (const std::string& isa : runnable_isas()) {
    const std::vector<float> seen = run_program(cpu_rig(2, isa), program);
    ASSERT_EQ(seen.size(), wanted.size());
    for (size_t i = 0; i < seen.size(); ++i)
      ASSERT_NEAR(seen[i], wanted[i], relative * std::fabs(wanted[i]) + absolute) << isa << " element " << i;
  }
}

TEST(ops, embedding_rows_are_the_files_values_in_every_type_and_role) {
  for (const DType dtype : weight_dtypes()) {
    const OwnedTensor table = random_tensor("table", dtype, {37, 512}, 11);
    std::vector<float> wanted(37 * 512);
    for (int64_t i = 0; i < 37; ++i) decode_row(table.view(), i, wanted.data() + i * 512);
    for (const WeightRole role : {WeightRole::kEmbedding, WeightRole::kEmbeddingAndLinear}) {
      Rig rig = cpu_rig(2);
      const auto& weight = rig.upload(table.view(), role);
      rig.reserve(1, 512, 37);
      const std::vector<float> seen = rig.run(37, [&] {
        rig.ops().run(op::Embed{{0, 37, 512}, &weight, 1.0f});
        return Activation{0, 37, 512};
      });
      EXPECT_EQ(first_difference(seen, wanted), -1) << dtype_info(dtype).name << " role " << static_cast<int>(role);
    }
  }
}

// An f32 sum of 160 squares in 16 lanes is within 10 ulp of exact; root, division and two products add 2 more.
TEST(ops, norms_agree) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    expect_close(
        [kind](Rig& rig, Activation x, Activation) {
          const OwnedTensor gain = tensor_of("gain", DType::kF32, {kCols}, random_values(kCols, 3));
          const auto& weight = rig.upload(gain.view(), WeightRole::kVector);
          rig.ops().run(op::Norm{{2, kRows, kCols}, x, weight, {kind, 1e-5f}});
          return Activation{2, kRows, kCols};
        },
        12 * 0x1p-23f, 1e-6f);
  }
}

TEST(ops, a_norm_without_gains_is_one_whose_gains_are_ones) {
  for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
    const auto run = [kind](bool has_gains) {
      return run_program(cpu_rig(2), [&](Rig& rig, Activation x, Activation) {
        const OwnedTensor ones = tensor_of("gain", DType::kF32, {kCols}, std::vector<float>(kCols, 1.0f));
        const auto& weight = rig.upload(ones.view(), WeightRole::kVector);
        rig.ops().run(op::Norm{x, x, {has_gains ? &weight : nullptr, nullptr}, {kind, 1e-5f}});
        return x;
      });
    };
    EXPECT_EQ(first_difference(run(false), run(true)), -1);
  }
}

TEST(ops, a_norm_may_overwrite_its_source) {
  expect_close(
      [](Rig& rig, Activation x, Activation) {
        const OwnedTensor gain = tensor_of("gain", DType::kBF16, {kCols}, random_values(kCols, 3));
        rig.ops().run(op::Norm{x, x, rig.upload(gain.view(), WeightRole::kVector), NormSpec{}});
        return x;
      },
      12 * 0x1p-23f, 1e-6f);
}

// exp is within 2 ulp, and three operations follow.
TEST(ops, gates_agree) {
  for (const GateKind kind :
       {GateKind::kSilu, GateKind::kGelu, GateKind::kRelu, GateKind::kReluSquared, GateKind::kClampedSilu,
        GateKind::kSigmoid}) {
    expect_close(
        [kind](Rig& rig, Activation x, Activation y) {
          // Past the limits of the clamped gate.
          rig.ops().run(op::Add{x, x, 4.0f});
          rig.ops().run(op::Add{y, y, 4.0f});
          rig.ops().run(op::Gate{x, x, y, kind});
          return x;
        },
        16 * 0x1p-23f, 2e-6f);
  }
}

// The bound of the kernel for the exact GELU is 2e-5.
TEST(ops, activations_agree) {
  for (const GateKind kind :
       {GateKind::kSilu, GateKind::kGelu, GateKind::kGeluErf, GateKind::kRelu, GateKind::kReluSquared}) {
    expect_close(
        [kind](Rig& rig, Activation x, Activation) {
          rig.ops().run(op::Activate{x, kind});
          return x;
        },
        2.5e-5f, 2e-6f);
  }
}

TEST(ops, bounds_are_kept) {
  const auto keep = [](Rig& rig, Activation x, Activation y) {
    rig.ops().run(op::Clamp{y, x, -0.25f, std::numeric_limits<float>::infinity()});
    rig.ops().run(op::Clamp{y, y, -1.0f, 0.5f});
    return y;
  };
  expect_close(keep, 0.0f, 0.0f);
}

TEST(ops, adding_under_a_gate_agrees) {
  expect_close(
      [](Rig& rig, Activation x, Activation y) {
        rig.ops().run(op::AddGated{x, y, {1, kRows, 1}});
        return x;
      },
      8 * 0x1p-23f, 2e-6f);
}

// One product of the factors, and one rounding more.
TEST(ops, scaling_agrees_with_and_without_a_weight) {
  for (const bool has_weight : {false, true}) {
    expect_close(
        [has_weight](Rig& rig, Activation x, Activation) {
          const OwnedTensor number = tensor_of("scale", DType::kF32, {1}, {0.83f});
          const auto& weight = rig.upload(number.view(), WeightRole::kVector);
          rig.ops().run(op::Scale{x, 1.7f, has_weight ? &weight : nullptr});
          return x;
        },
        0x1p-22f, 0.0f);
  }
}

TEST(ops, columns_are_copied_from_where_they_begin) {
  const std::vector<float> values = random_values(kRows * kCols, 1);
  for (const char* backend : {"reference", "cpu"}) {
    Rig rig = std::string_view(backend) == "cpu" ? cpu_rig(2) : reference_rig();
    const std::vector<float> seen = run_program(std::move(rig), [](Rig& made, Activation x, Activation) {
      made.ops().run(op::Columns{{2, kRows, 24}, x, 40});
      return Activation{2, kRows, 24};
    });
    EXPECT_EQ(seen[24 * 3 + 5], values[kCols * 3 + 45]) << backend;
  }
}

TEST(ops, pieces_go_to_two_places_in_turn) {
  constexpr int32_t kWidth = 16;
  const std::vector<float> values = random_values(kRows * kCols, 1);
  for (const bool takes_first : {true, false}) {
    expect_close(
        [&](Rig& rig, Activation x, Activation) {
          const Activation first{1, kRows, kCols / 2};
          const Activation second{2, kRows, kCols / 2};
          rig.ops().run(op::Unzip{first, second, x, kWidth});
          return takes_first ? first : second;
        },
        0.0f, 0.0f);
    const std::vector<float> seen = run_program(cpu_rig(2), [&](Rig& rig, Activation x, Activation) {
      const Activation first{1, kRows, kCols / 2};
      const Activation second{2, kRows, kCols / 2};
      rig.ops().run(op::Unzip{first, second, x, kWidth});
      return takes_first ? first : second;
    });
    // Column 17 of the result is the second of the second piece.
    EXPECT_EQ(seen[17], values[takes_first ? 33 : 49]);
  }
}

TEST(ops, pieces_of_two_widths_are_parted_and_joined_again) {
  const std::vector<float> values = random_values(kRows * kCols, 1);
  for (const char* backend : {"reference", "cpu"}) {
    const auto program = [&](Rig& rig, Activation x, Activation y) {
      const Activation first{1, kRows, kCols / 5 * 4};
      const Activation second{2, kRows, kCols / 5};
      rig.ops().run(op::Unzip{first, second, x, 32});
      EXPECT_EQ(y.slot, first.slot);
      rig.ops().run(op::Zip{x, first, second, 32});
      return x;
    };
    Rig rig = std::string_view(backend) == "cpu" ? cpu_rig(2) : reference_rig();
    EXPECT_EQ(run_program(std::move(rig), program), values) << backend;
  }
  const std::vector<float> second = run_program(cpu_rig(2), [&](Rig& rig, Activation x, Activation) {
    rig.ops().run(op::Unzip{{1, kRows, kCols / 5 * 4}, {2, kRows, kCols / 5}, x, 32});
    return Activation{2, kRows, kCols / 5};
  });
  EXPECT_EQ(second[8], values[72]);  // the first of the second piece, behind 32, 8 and 32
}

TEST(ops, positions_are_added_from_a_table) {
  expect_close(
      [](Rig& rig, Activation x, Activation) {
        rig.ops().run(
            op::AddPositions{x, &rig.upload_rows(random_values(static_cast<size_t>(kRows) * kCols, 5), kCols)});
        return x;
      },
      0x1p-23f, 0.0f);
}

TEST(ops, adding_agrees_to_one_rounding) {
  expect_close(
      [](Rig& rig, Activation x, Activation y) {
        rig.ops().run(op::Add{x, y, 0.37f});
        return x;
      },
      0x1p-23f, 0.0f);
}

TEST(ops, gathering_picks_the_wanted_rows) {
  expect_close(
      [](Rig& rig, Activation x, Activation) {
        rig.ops().run(op::Gather{{2, kRows, kCols}, x});
        return Activation{2, kRows, kCols};
      },
      0.0f, 0.0f);
}

std::vector<RopeSpec> rope_specs() {
  std::vector<RopeSpec> specs;
  for (const RopePairs pairs : {RopePairs::kInterleaved, RopePairs::kHalves}) {
    for (const RopeScaling scaling :
         {RopeScaling::kNone, RopeScaling::kLinear, RopeScaling::kYarn, RopeScaling::kLlama3}) {
      RopeSpec spec;
      spec.pairs = pairs;
      spec.n_dims = 32;
      spec.scaling = scaling;
      spec.factor = 8.0;
      spec.original_positions = 64;
      spec.attention_factor = scaling == RopeScaling::kYarn ? 1.2 : 1.0;
      specs.push_back(spec);
      spec.n_dims = 24;
      spec.frequency_factors = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6};
      specs.push_back(spec);
    }
  }
  return specs;
}

// Two products and a sum: their rounding is at most 2^-23 of the larger operand (below 5 here).
TEST(ops, rotary_embeddings_of_every_scaling_agree) {
  for (const RopeSpec& spec : rope_specs()) {
    expect_close(
        [&spec](Rig& rig, Activation x, Activation) {
          rig.ops().run(op::Rope{x, kCols / 32, 32, &spec});
          return x;
        },
        0x1p-22f, 1.5e-6f);
  }
}

TEST(ops, two_rotary_specs_in_one_step_do_not_mix) {
  const std::vector<RopeSpec> specs = rope_specs();
  expect_close(
      [&specs](Rig& rig, Activation x, Activation y) {
        rig.ops().run(op::Rope{x, kCols / 32, 32, &specs[0]});
        rig.ops().run(op::Rope{y, kCols / 32, 32, &specs[5]});
        rig.ops().run(op::Rope{x, kCols / 32, 32, &specs[0]});
        rig.ops().run(op::Add{x, y, 1.0f});
        return x;
      },
      0x1p-20f, 5e-6f);
}

// The sum and one product are rounded.
TEST(ops, rows_grow_with_their_positions) {
  const backend::TemperSpec spec{0.5f, 2};
  const auto program = [&spec](Rig& rig, Activation x, Activation) {
    rig.ops().run(op::Temper{x, spec});
    return x;
  };
  expect_close(program, 0x1p-23f, 1e-6f);
  const std::vector<float> values = random_values(kRows * kCols, 1);
  const std::vector<float> seen = run_program(cpu_rig(2), program);
  EXPECT_EQ(seen[0], values[0]);
  EXPECT_EQ(backend::temper_factor(spec, 1), 1.0);
  EXPECT_NEAR(backend::temper_factor(spec, 7), 1.0 + 0.5 * std::log(4.0), 1e-12);
  EXPECT_NE(seen[(kRows - 1) * kCols], values[(kRows - 1) * kCols]);
}

// --- linear ---------------------------------------------------------------------------------------------------------

constexpr int64_t kIn = 512;
constexpr int64_t kOut = 72;  // four panels and a half

// One deviation of what encoding the activations does to a dot product of w and x.
double encoding_deviation(DType dtype, const float* w, const float* x) {
  double w2 = 0;
  double wx2 = 0;
  double wx = 0;
  double largest = 0;
  for (int64_t i = 0; i < kIn; ++i) {
    const double product = static_cast<double>(w[i]) * static_cast<double>(x[i]);
    w2 += static_cast<double>(w[i]) * static_cast<double>(w[i]);
    wx2 += product * product;
    wx += std::fabs(product);
    largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
  }
  switch (kernels::encoding_of(dtype)) {
    case kernels::Encoding::kF32:
      return wx * 0x1p-24;  // sums of 512 in f32
    case kernels::Encoding::kBf16:
      return std::sqrt(wx2) * 0x1p-9 / std::sqrt(3.0) + wx * 0x1p-24;
    case kernels::Encoding::kQ8x256:
    case kernels::Encoding::kQ8x32:
    case kernels::Encoding::kQ8Row:
      return std::sqrt(w2) * largest / 127.0 / std::sqrt(12.0) + wx * 0x1p-24;
  }
  return 0;
}

struct LinearCase {
  OwnedTensor weight;
  OwnedTensor other;
  OwnedTensor bias;
  std::vector<float> inputs;
};

LinearCase make_linear_case(DType dtype, int32_t n_rows) {
  return {random_tensor("w", dtype, {kOut, kIn}, 21), random_tensor("other", DType::kF32, {kOut, kIn}, 22),
          tensor_of("bias", DType::kF32, {kOut}, random_values(kOut, 23)),
          random_values(static_cast<size_t>(n_rows * kIn), 24)};
}

// Two terms, of which the second has a bias and maybe another encoding.
std::vector<float> run_linear(Rig rig, const LinearCase& c, int32_t n_rows, int result, int32_t n_first = kOut) {
  const auto& input = rig.upload_rows(c.inputs, kIn);
  const auto& weight = rig.upload(c.weight.view(), WeightRole::kLinear);
  const auto& other = rig.upload(c.other.view(), WeightRole::kLinear);
  const auto& bias = rig.upload(c.bias.view(), WeightRole::kVector);
  rig.reserve(4, kIn, n_rows);
  const Activation dst[3] = {{1, n_rows, n_first}, {2, n_rows, kOut}, {3, n_rows, kOut}};
  return rig.run(n_rows, [&] {
    rig.ops().run(op::Embed{{0, n_rows, kIn}, &input, 1.0f});
    const backend::LinearTerm terms[] = {
        {&weight, nullptr, dst[0]}, {&other, nullptr, dst[1]}, {&weight, &bias, dst[2]}};
    rig.ops().run(op::Linear{terms, {0, n_rows, kIn}});
    return dst[result];
  });
}

// Six deviations of the encoding's rounding: about one in 10^9 dots would exceed it.
TEST(linear, every_weight_type_agrees_within_the_rounding_of_its_activations) {
  for (const DType dtype : weight_dtypes()) {
    for (const int32_t n_rows : {1, 5, 33}) {
      const LinearCase c = make_linear_case(dtype, n_rows);
      const std::vector<float> wanted = run_linear(reference_rig(), c, n_rows, 0);
      const std::vector<float> seen = run_linear(cpu_rig(2), c, n_rows, 0);
      std::vector<float> row(kIn);
      for (int64_t out = 0; out < kOut; ++out) {
        decode_row(c.weight.view(), out, row.data());
        for (int64_t t = 0; t < n_rows; ++t) {
          const size_t i = static_cast<size_t>(t * kOut + out);
          const double bound = 6 * encoding_deviation(dtype, row.data(), c.inputs.data() + t * kIn);
          ASSERT_NEAR(seen[i], wanted[i], bound) << dtype_info(dtype).name << " row " << t << " output " << out;
        }
      }
    }
  }
}

TEST(linear, terms_of_other_types_and_biases_in_one_call_give_what_they_give_alone) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_K, DType::kBF16, DType::kF16}) {
    const LinearCase c = make_linear_case(dtype, 9);
    const std::vector<float> plain = run_linear(cpu_rig(2), c, 9, 0);
    const std::vector<float> biased = run_linear(cpu_rig(2), c, 9, 2);
    std::vector<float> bias(kOut);
    decode_row(c.bias.view(), 0, bias.data());
    for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(biased[i], plain[i] + bias[i % kOut]);
  }
}

TEST(linear, the_first_outputs_alone_are_those_of_all) {
  constexpr int32_t kFirst = 16;
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_K, DType::kQ6_K, DType::kBF16, DType::kF32}) {
    for (const bool is_reference : {false, true}) {
      const LinearCase c = make_linear_case(dtype, 5);
      const std::vector<float> all = run_linear(is_reference ? reference_rig() : cpu_rig(2), c, 5, 0);
      const std::vector<float> first = run_linear(is_reference ? reference_rig() : cpu_rig(2), c, 5, 0, kFirst);
      ASSERT_EQ(first.size(), size_t{5 * kFirst});
      for (size_t i = 0; i < first.size(); ++i) {
        ASSERT_EQ(first[i], all[i / kFirst * kOut + i % kFirst]) << dtype_info(dtype).name << " " << i;
      }
    }
  }
}

TEST(linear, rows_threads_and_instruction_sets_do_not_change_a_bit) {
  for (const DType dtype : weight_dtypes()) {
    const LinearCase all = make_linear_case(dtype, 40);
    const std::vector<float> wanted = run_linear(cpu_rig(1), all, 40, 0);
    for (const std::string& isa : runnable_isas()) {
      for (const int32_t n_threads : {1, 2, 3}) {
        const std::vector<float> seen = run_linear(cpu_rig(n_threads, isa), all, 40, 0);
        ASSERT_EQ(first_difference(seen, wanted), -1)
            << dtype_info(dtype).name << " " << isa << " " << n_threads << " threads";
      }
      for (const int32_t n_rows : {1, 2, 3, 4, 7, 16}) {
        const std::vector<float> seen = run_linear(cpu_rig(1, isa), make_linear_case(dtype, n_rows), n_rows, 0);
        const std::vector<float> head(wanted.begin(), wanted.begin() + n_rows * kOut);
        ASSERT_EQ(first_difference(seen, head), -1) << dtype_info(dtype).name << " " << isa << " " << n_rows << " rows";
      }
    }
  }
}

// A weight of three heads against linear() with the rows of one of them.
TEST(linear, heads_by_themselves_have_the_bits_of_products_with_their_rows_alone) {
  constexpr int32_t kHeads = 3;
  constexpr int32_t kHeadOut = 32;
  constexpr int32_t kHeadIn = 256;
  constexpr int32_t kMany = 21;
  const std::vector<float> inputs = random_values(kMany * kHeads * kHeadIn, 25);
  for (const DType dtype : weight_dtypes()) {
    const OwnedTensor all = random_tensor("heads", dtype, {kHeads * kHeadOut, kHeadIn}, 26);
    const auto run = [&](Rig rig, int32_t n_rows, int32_t head) {
      const auto& weight = rig.upload(all.view(), WeightRole::kLinear);
      const auto& table = rig.upload_rows(inputs, kHeads * kHeadIn);
      rig.reserve(4, 4 * kHeads * kHeadIn, n_rows);
      return rig.run(n_rows, [&] {
        const Activation x{0, n_rows, kHeads * kHeadIn};
        rig.ops().run(op::Embed{x, &table, 1.0f});
        if (head < 0) {
          const Activation dst{1, n_rows, kHeads * kHeadOut};
          rig.ops().run(op::LinearHeads{dst, x, &weight, kHeads});
          return dst;
        }
        TensorView rows = all.view();
        rows.n_bytes /= kHeads;
        rows.data += static_cast<size_t>(head) * rows.n_bytes;
        rows.shape.dims[0] = kHeadOut;
        const Activation own{2, n_rows, kHeadIn};
        const Activation rest{3, n_rows, (kHeads - 1) * kHeadIn};
        if (head == 0) {
          rig.ops().run(op::Unzip{own, rest, x, kHeadIn});
        } else {
          rig.ops().run(op::Unzip{rest, own, x, rest.n_cols});
        }
        const Activation dst{1, n_rows, kHeadOut};
        const backend::LinearTerm terms[] = {{&rig.upload(rows, WeightRole::kLinear), nullptr, dst}};
        rig.ops().run(op::Linear{terms, own});
        return dst;
      });
    };
    const std::vector<float> wanted = run(cpu_rig(1), kMany, -1);
    for (const int32_t head : {0, kHeads - 1}) {
      const std::vector<float> alone = run(cpu_rig(1), kMany, head);
      const size_t begin = static_cast<size_t>(head) * kHeadOut;
      for (size_t i = 0; i < alone.size(); ++i) {
        ASSERT_EQ(wanted[i / kHeadOut * kHeads * kHeadOut + begin + i % kHeadOut], alone[i]) << dtype_info(dtype).name;
      }
    }
    for (const std::string& isa : runnable_isas()) {
      EXPECT_EQ(first_difference(run(cpu_rig(3, isa), kMany, -1), wanted), -1) << dtype_info(dtype).name << " " << isa;
      const std::vector<float> one = run(cpu_rig(2, isa), 1, -1);
      EXPECT_EQ(first_difference(one, {wanted.begin(), wanted.begin() + kHeads * kHeadOut}), -1) << isa;
    }
  }
}

}  // namespace
}  // namespace candor::testing
