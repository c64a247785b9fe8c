// Layers that keep a state (delta rules, state spaces, gated convolutions): cpu against reference, and cpu against
// itself bit for bit, whatever the chunks, the threads, the instruction set, the company and the place that a state was
// kept in. A norm whose gains differ by group.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>

#include "conformance/rig.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::ConvSpec;
using backend::DeltaSpec;
using backend::GateKind;
using backend::KeyHeads;
using backend::SsmSpec;
using backend::StateSave;
using backend::WeightRole;

constexpr int32_t kTokens = 150;  // more than a kernel takes at once

// One layer with a state, on random inputs that are those of the token at each position. Slot 0 holds its channels and
// 1 its result; 2 and 3 are room.
struct Kind {
  virtual ~Kind() = default;
  virtual int32_t n_channels() const = 0;
  virtual int64_t state_floats() const = 0;
  virtual void upload(Rig& rig) = 0;
  // From the activations of n rows in slot 0, in slot 1.
  virtual Activation run(Rig& rig, int32_t n) = 0;
};

const backend::Weight& vector(Rig& rig, const std::vector<float>& values) {
  const OwnedTensor tensor = tensor_of("vector", DType::kF32, {static_cast<int64_t>(values.size())}, values);
  return rig.upload(tensor.view(), WeightRole::kVector);
}

struct Ssm final : Kind {
  explicit Ssm(const SsmSpec& of) : spec(of) {}
  int32_t n_channels() const override { return spec.n_channels(); }
  int64_t state_floats() const override { return spec.state_floats(); }
  void upload(Rig& rig) override {
    const auto n_heads = static_cast<size_t>(spec.n_heads);
    const auto n = static_cast<size_t>(spec.n_channels());
    steps = &rig.upload_rows(random_values(kTokens * n_heads, 2, 6.0f), spec.n_heads);
    taps = &vector(rig, random_values(n * static_cast<size_t>(spec.n_taps), 4));
    taps_bias = &vector(rig, random_values(n, 5));
    std::vector<float> rates = random_values(n_heads, 6);
    for (float& value : rates) value = -0.01f - std::fabs(value);
    rate = &vector(rig, rates);
    bias = &vector(rig, random_values(n_heads, 7));
    skip = &vector(rig, random_values(n_heads, 8));
  }
  Activation run(Rig& rig, int32_t n) override {
    const Activation channels{0, n, spec.n_channels()};
    const Activation step{2, n, spec.n_heads};
    const Activation result{1, n, spec.width()};
    rig.ops().run(op::Embed{step, steps, 1.0f});
    rig.ops().run(op::CausalConv{{channels, taps, 1, taps_bias}, spec.conv()});
    rig.ops().run(op::SsmScan{result, {channels, step, rate, bias, skip, 1}, spec});
    return result;
  }
  SsmSpec spec;
  const backend::Weight *steps, *taps, *taps_bias, *rate, *bias, *skip;
};

struct Conv final : Kind {
  explicit Conv(const ConvSpec& of) : spec(of) {}
  int32_t n_channels() const override { return spec.n_channels; }
  int64_t state_floats() const override { return spec.state_floats(); }
  void upload(Rig& rig) override {
    const auto n = static_cast<size_t>(spec.n_channels);
    gates = &rig.upload_rows(random_values(kTokens * n, 2), spec.n_channels);
    taps = &vector(rig, random_values(n * static_cast<size_t>(spec.n_taps), 4));
  }
  Activation run(Rig& rig, int32_t n) override {
    const Activation channels{0, n, spec.n_channels};
    const Activation gate{1, n, spec.n_channels};
    rig.ops().run(op::Embed{gate, gates, 1.0f});
    rig.ops().run(op::Gate{channels, gate, channels, GateKind::kProduct});
    rig.ops().run(op::CausalConv{{channels, taps, 1}, spec});
    rig.ops().run(op::Gate{gate, channels, gate, GateKind::kProduct});
    return gate;
  }
  ConvSpec spec;
  const backend::Weight *gates, *taps;
};

struct Delta final : Kind {
  explicit Delta(const DeltaSpec& of) : spec(of) {}
  int32_t n_channels() const override { return spec.n_channels(); }
  int64_t state_floats() const override { return spec.state_floats(); }
  void upload(Rig& rig) override {
    const auto n_heads = static_cast<size_t>(spec.n_v_heads);
    const auto n_gates = static_cast<size_t>(spec.n_gates());
    alphas = &rig.upload_rows(random_values(kTokens * n_gates, 2, 8.0f), spec.n_gates());
    betas = &rig.upload_rows(random_values(kTokens * n_heads, 3, 8.0f), spec.n_v_heads);
    taps = &vector(rig, random_values(static_cast<size_t>(spec.n_channels() * spec.n_taps), 4));
    std::vector<float> rates = random_values(n_heads, 5);
    for (float& value : rates) value = -0.01f - std::fabs(value);
    rate = &vector(rig, rates);
    bias = &vector(rig, random_values(n_gates, 6));
  }
  Activation run(Rig& rig, int32_t n) override {
    const Activation qkv{0, n, spec.n_channels()};
    const Activation alpha{2, n, spec.n_gates()};
    const Activation beta{3, n, spec.n_v_heads};
    const Activation result{1, n, spec.v_width()};
    rig.ops().run(op::Embed{alpha, alphas, 1.0f});
    rig.ops().run(op::Embed{beta, betas, 1.0f});
    rig.ops().run(op::CausalConv{{qkv, taps, 1}, spec.conv()});
    rig.ops().run(op::DeltaRule{result, {qkv, alpha, beta, rate, bias, 1}, spec});
    return result;
  }
  DeltaSpec spec;
  const backend::Weight *alphas, *betas, *taps, *rate, *bias;
};

class Layer {
 public:
  Layer(Rig rig, std::unique_ptr<Kind> kind) : rig_(std::move(rig)), kind_(std::move(kind)) {
    const auto n_channels = static_cast<size_t>(kind_->n_channels());
    inputs_ = &rig_.upload_rows(random_values(kTokens * n_channels, 1, 2.0f), kind_->n_channels());
    kind_->upload(rig_);
    rig_.reserve(4, kind_->n_channels(), 2 * kTokens);
    rig_.states({2, kind_->state_floats()}, 32);
  }

  struct Part {
    int32_t begin;
    int32_t end;
    StateId from;
    StateId to;
    std::vector<StateSave> more = {};  // row: of the part
  };
  // Of each part the tokens [begin, end) from the state in `from`; the state behind the last goes to `to`, and others
  // as asked for.
  std::vector<float> run(const std::vector<Part>& parts) {
    std::vector<TokenId> tokens;
    std::vector<backend::SeqSlice> slices;
    std::vector<StateSave> saves;
    for (const Part& part : parts) {
      const auto first = static_cast<int32_t>(tokens.size());
      slices.push_back({first, part.end - part.begin, part.begin, part.from});
      for (const StateSave& save : part.more) saves.push_back({first + save.row, save.slot});
      for (int32_t i = part.begin; i < part.end; ++i) tokens.push_back(i);
      saves.push_back({static_cast<int32_t>(tokens.size()) - 1, part.to});
    }
    std::vector<int32_t> out_rows(tokens.size());
    std::iota(out_rows.begin(), out_rows.end(), 0);
    const backend::StepBatch batch{.tokens = tokens,
                                   .positions = tokens,
                                   .seqs = slices,
                                   .block_table = {},
                                   .max_blocks = 0,
                                   .out_rows = out_rows,
                                   .saves = saves};
    const auto n = static_cast<int32_t>(tokens.size());
    return rig_.run(batch, [&] {
      rig_.ops().run(op::Embed{{0, n, kind_->n_channels()}, inputs_, 1.0f});
      const Activation result = kind_->run(rig_, n);
      width_ = result.n_cols;
      return result;
    });
  }
  std::vector<float> run_all() { return run({{0, kTokens, kNoState, 0}}); }
  std::vector<float> run_in(int32_t chunk) {
    std::vector<float> all;
    StateId at = kNoState;
    for (int32_t begin = 0; begin < kTokens; begin += chunk) {
      const StateId next = at == 0 ? 1 : 0;
      const std::vector<float> part = run({{begin, std::min(begin + chunk, kTokens), at, next}});
      all.insert(all.end(), part.begin(), part.end());
      at = next;
    }
    return all;
  }
  std::vector<float> rows_of(const std::vector<float>& all, int32_t begin, int32_t end) const {
    return {all.begin() + int64_t{width_} * begin, all.begin() + int64_t{width_} * end};
  }

 private:
  Rig rig_;
  std::unique_ptr<Kind> kind_;
  const backend::Weight* inputs_ = nullptr;
  int32_t width_ = 0;
};

// Widths that fill lanes and blocks of the state, and widths that do not.
std::vector<std::function<std::unique_ptr<Kind>()>> kinds() {
  std::vector<std::function<std::unique_ptr<Kind>()>> makers;
  for (const SsmSpec& spec : {SsmSpec{.n_heads = 4, .head_dim = 64, .n_groups = 1, .state_dim = 128, .n_taps = 4},
                              SsmSpec{.n_heads = 6, .head_dim = 20, .n_groups = 3, .state_dim = 37, .n_taps = 3},
                              SsmSpec{.n_heads = 2, .head_dim = 7, .n_groups = 2, .state_dim = 5, .n_taps = 2},
                              SsmSpec{.n_heads = 4, .head_dim = 16, .n_groups = 2, .state_dim = 16, .n_taps = 4,
                                      .least_step = 0.25f, .most_step = 1.5f}}) {
    makers.push_back([spec] { return std::make_unique<Ssm>(spec); });
  }
  for (const ConvSpec& spec : {ConvSpec{.n_channels = 192, .n_taps = 3, .has_silu = false},
                               ConvSpec{.n_channels = 70, .n_taps = 7, .has_silu = false}}) {
    makers.push_back([spec] { return std::make_unique<Conv>(spec); });
  }
  for (const DeltaSpec& spec :
       {DeltaSpec{.n_k_heads = 2, .n_v_heads = 4, .k_dim = 32, .v_dim = 64, .n_taps = 4},
        DeltaSpec{.n_k_heads = 2, .n_v_heads = 4, .k_dim = 32, .v_dim = 64, .n_taps = 4, .key_heads = KeyHeads::kTiled},
        DeltaSpec{.n_k_heads = 1, .n_v_heads = 3, .k_dim = 20, .v_dim = 84, .n_taps = 3},
        DeltaSpec{.n_k_heads = 3, .n_v_heads = 3, .k_dim = 128, .v_dim = 24, .n_taps = 2},
        DeltaSpec{.n_k_heads = 2, .n_v_heads = 2, .k_dim = 36, .v_dim = 64, .n_taps = 4, .has_channel_gates = true},
        DeltaSpec{.n_k_heads = 2, .n_v_heads = 2, .k_dim = 24, .v_dim = 48, .n_taps = 4, .share_scale = 2.0f}}) {
    makers.push_back([spec] { return std::make_unique<Delta>(spec); });
  }
  return makers;
}

// Values are below 3; chains of at most 128 products over a state that forgets.
TEST(states, agrees_with_the_reference) {
  for (const auto& make : kinds()) {
    const std::vector<float> wanted = Layer(reference_rig(), make()).run_all();
    const float largest = std::fabs(*std::ranges::max_element(wanted, {}, [](float x) { return std::fabs(x); }));
    for (const std::string& isa : runnable_isas()) {
      const std::vector<float> seen = Layer(cpu_rig(2, isa), make()).run_all();
      ASSERT_EQ(seen.size(), wanted.size());
      for (size_t i = 0; i < seen.size(); ++i)
        ASSERT_NEAR(seen[i], wanted[i], 1e-5f * largest) << isa << " element " << i;
    }
  }
}

TEST(states, has_the_same_bits_on_every_instruction_set_and_number_of_threads) {
  for (const auto& make : kinds()) {
    const std::vector<float> wanted = Layer(cpu_rig(1, "portable"), make()).run_all();
    for (const std::string& isa : runnable_isas()) {
      for (const int32_t n_threads : {1, 2, 3}) {
        EXPECT_EQ(first_difference(Layer(cpu_rig(n_threads, isa), make()).run_all(), wanted), -1) << isa;
      }
    }
  }
}

TEST(states, has_the_same_bits_in_every_chunking) {
  for (const auto& make : kinds()) {
    Layer layer(cpu_rig(2), make());
    Layer reference(reference_rig(), make());
    const std::vector<float> wanted = layer.run_all();
    const std::vector<float> on_paper = reference.run_all();
    for (const int32_t chunk : {1, 2, 3, 7, 32, 64, 65}) {
      EXPECT_EQ(first_difference(layer.run_in(chunk), wanted), -1) << "chunks of " << chunk;
      EXPECT_EQ(first_difference(reference.run_in(chunk), on_paper), -1) << "chunks of " << chunk;
    }
  }
}

// States kept behind some rows of one slice: going on from each gives the rows of the whole, together in one step and
// again.
TEST(states, goes_on_from_any_state_that_was_kept_and_leaves_it_as_it_was) {
  for (const auto& make : kinds()) {
    for (Rig (*rig)() : {+[] { return cpu_rig(2); }, &reference_rig}) {
      Layer layer(rig(), make());
      Layer::Part whole{0, kTokens, kNoState, 0};
      std::vector<Layer::Part> parts = {{0, 5, kNoState, 20}};
      for (const int32_t row : {0, 1, 2, 5, 31, 63, 64, 140}) {
        const auto slot = static_cast<StateId>(1 + whole.more.size());
        whole.more.push_back({row, slot});
        parts.push_back({row + 1, std::min(row + 6, kTokens), slot, slot + 20});
      }
      const std::vector<float> wanted = layer.run_all();
      EXPECT_EQ(first_difference(layer.run({whole}), wanted), -1);
      for (int i = 0; i < 2; ++i) {
        const std::vector<float> seen = layer.run(parts);
        int32_t at = 0;
        for (const Layer::Part& part : parts) {
          const int32_t n = part.end - part.begin;
          EXPECT_EQ(first_difference(layer.rows_of(seen, at, at + n), layer.rows_of(wanted, part.begin, part.end)), -1)
              << "from " << part.begin;
          at += n;
        }
      }
    }
  }
}

TEST(states, another_state_gives_other_rows) {
  for (const auto& make : kinds()) {
    Layer layer(cpu_rig(2), make());
    const std::vector<float> wanted = layer.run({{0, kTokens, kNoState, 0, {{31, 1}, {32, 2}}}});
    const std::vector<float> right = layer.rows_of(wanted, 32, kTokens);
    EXPECT_EQ(first_difference(layer.run({{32, kTokens, 1, 3}}), right), -1);
    EXPECT_NE(first_difference(layer.run({{32, kTokens, 2, 3}}), right), -1);
    EXPECT_NE(first_difference(layer.run({{32, kTokens, kNoState, 3}}), right), -1);
  }
}

// Rows of a norm take the gains of their group in turn, as if each group had a norm of its own.
TEST(states, gains_of_groups_are_taken_in_turn) {
  constexpr int32_t kGroups = 3, kWidth = 40, kStateRows = 5;
  const std::vector<float> gains = random_values(kGroups * kWidth, 11);
  const std::vector<float> values = random_values(kStateRows * kGroups * kWidth, 12);
  const auto run = [&](Rig rig, int32_t group) {
    const auto own = gains.begin() + std::max(0, group) * kWidth;
    const backend::Weight& weight = vector(rig, group < 0 ? gains : std::vector<float>(own, own + kWidth));
    const backend::Weight& table = rig.upload_rows(values, kGroups * kWidth);
    rig.reserve(1, kGroups * kWidth, kStateRows);
    rig.kv(1, 1, 32, 4);
    return rig.run(kStateRows, [&] {
      const Activation x{0, kStateRows, kGroups * kWidth};
      const Activation pieces{0, kStateRows * kGroups, kWidth};
      rig.ops().run(op::Embed{x, &table, 1.0f});
      rig.ops().run(op::Norm{pieces, pieces, weight, {}});
      return x;
    });
  };
  for (Rig (*rig)() : {+[] { return cpu_rig(2); }, &reference_rig}) {
    const std::vector<float> together = run(rig(), -1);
    for (int32_t group = 0; group < kGroups; ++group) {
      const std::vector<float> alone = run(rig(), group);
      for (int32_t row = 0; row < kStateRows; ++row) {
        const auto at = (row * kGroups + group) * kWidth;
        EXPECT_TRUE(std::equal(alone.begin() + at, alone.begin() + at + kWidth, together.begin() + at));
      }
    }
  }
}

}  // namespace
}  // namespace candor::testing
