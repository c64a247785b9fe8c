// The convolution and the delta rule of recurrent layers: cpu against reference, and cpu against itself bit for bit,
// whatever the chunks, the threads, the instruction set, the company and the place that a state was kept in.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "conformance/rig.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::DeltaSpec;
using backend::KeyHeads;
using backend::StateSave;
using backend::WeightRole;

constexpr int32_t kTokens = 70;

// Widths that fill lanes, and widths that do not.
constexpr DeltaSpec kSpecs[] = {
    {.n_k_heads = 2, .n_v_heads = 4, .k_dim = 32, .v_dim = 64, .n_taps = 4},
    {.n_k_heads = 2, .n_v_heads = 4, .k_dim = 32, .v_dim = 64, .n_taps = 4, .key_heads = KeyHeads::kTiled},
    {.n_k_heads = 1, .n_v_heads = 3, .k_dim = 20, .v_dim = 84, .n_taps = 3},
    {.n_k_heads = 3, .n_v_heads = 3, .k_dim = 128, .v_dim = 24, .n_taps = 2},
    {.n_k_heads = 2, .n_v_heads = 2, .k_dim = 36, .v_dim = 64, .n_taps = 4, .has_channel_gates = true},
};

// One recurrent layer on random inputs, which are those of the token at each position.
class Layer {
 public:
  Layer(Rig rig, const DeltaSpec& spec, int32_t n_slots = 32) : rig_(std::move(rig)), spec_(spec) {
    const auto n_heads = static_cast<size_t>(spec.n_v_heads);
    const auto n_channels = static_cast<size_t>(spec.n_channels());
    inputs_ = &rig_.upload_rows(random_values(kTokens * n_channels, 1, 2.0f), spec.n_channels());
    const auto n_gates = static_cast<size_t>(spec.n_gates());
    alphas_ = &rig_.upload_rows(random_values(kTokens * n_gates, 2, 8.0f), spec.n_gates());
    betas_ = &rig_.upload_rows(random_values(kTokens * n_heads, 3, 8.0f), spec.n_v_heads);
    taps_ = &vector(random_values(n_channels * static_cast<size_t>(spec.n_taps), 4));
    std::vector<float> rates = random_values(n_heads, 5);
    for (float& rate : rates) rate = -0.01f - std::fabs(rate);
    rates_ = &vector(rates);
    biases_ = &vector(random_values(n_gates, 6));
    rig_.reserve(4, std::max(spec.n_channels(), spec.v_width()), 2 * kTokens);
    rig_.states({2, spec.state_floats()}, n_slots);
  }

  // Tokens [begin, end) from the state in `from`; the state behind the last goes to `to`, and others as asked for.
  struct Part {
    int32_t begin;
    int32_t end;
    StateId from;
    StateId to;
    std::vector<StateSave> more = {};  // row: of the part
  };
  std::vector<float> run(const std::vector<Part>& parts) {
    std::vector<TokenId> tokens;
    std::vector<backend::SeqSlice> slices;
    std::vector<StateSave> saves;
    std::vector<int32_t> out_rows;
    for (const Part& part : parts) {
      const auto first = static_cast<int32_t>(tokens.size());
      slices.push_back({first, part.end - part.begin, part.begin, part.from});
      for (const StateSave& save : part.more) saves.push_back({first + save.row, save.slot});
      for (int32_t i = part.begin; i < part.end; ++i) tokens.push_back(i);
      saves.push_back({static_cast<int32_t>(tokens.size()) - 1, part.to});
    }
    out_rows.resize(tokens.size());
    std::iota(out_rows.begin(), out_rows.end(), 0);
    const backend::StepBatch batch{.tokens = tokens,
                                   .positions = tokens,
                                   .seqs = slices,
                                   .block_table = {},
                                   .max_blocks = 0,
                                   .out_rows = out_rows,
                                   .saves = saves};
    const auto n = static_cast<int32_t>(tokens.size());
    const Activation qkv{0, n, spec_.n_channels()};
    const Activation alpha{1, n, spec_.n_gates()};
    const Activation beta{2, n, spec_.n_v_heads};
    const Activation result{3, n, spec_.v_width()};
    return rig_.run(batch, [&] {
      rig_.ops().embed(qkv, *inputs_, 1.0f);
      rig_.ops().embed(alpha, *alphas_, 1.0f);
      rig_.ops().embed(beta, *betas_, 1.0f);
      rig_.ops().causal_conv({qkv, taps_, 1}, spec_.conv());
      rig_.ops().delta_rule(result, {qkv, alpha, beta, rates_, biases_, 1}, spec_);
      return result;
    });
  }
  std::vector<float> run_all() { return run({{0, kTokens, kNoState, 0}}); }
  // In chunks, each from the state that the one before left.
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
  size_t row_floats() const { return static_cast<size_t>(spec_.v_width()); }

 private:
  const backend::Weight& vector(const std::vector<float>& values) {
    const OwnedTensor tensor = tensor_of("vector", DType::kF32, {static_cast<int64_t>(values.size())}, values);
    return rig_.upload(tensor.view(), WeightRole::kVector);
  }

  Rig rig_;
  DeltaSpec spec_;
  const backend::Weight *inputs_, *alphas_, *betas_, *taps_, *rates_, *biases_;
};

std::vector<float> rows_of(const std::vector<float>& all, int32_t begin, int32_t end, size_t width) {
  return {all.begin() + static_cast<int64_t>(width) * begin, all.begin() + static_cast<int64_t>(width) * end};
}

// Values are below 3; chains of at most 128 products, and a state that forgets.
TEST(delta, agrees_with_the_reference) {
  for (const DeltaSpec& spec : kSpecs) {
    const std::vector<float> wanted = Layer(reference_rig(), spec).run_all();
    for (const std::string& isa : runnable_isas()) {
      const std::vector<float> seen = Layer(cpu_rig(2, isa), spec).run_all();
      ASSERT_EQ(seen.size(), wanted.size());
      for (size_t i = 0; i < seen.size(); ++i) ASSERT_NEAR(seen[i], wanted[i], 2e-5f) << isa << " element " << i;
    }
  }
}

TEST(delta, has_the_same_bits_on_every_instruction_set_and_number_of_threads) {
  for (const DeltaSpec& spec : kSpecs) {
    const std::vector<float> wanted = Layer(cpu_rig(1, "portable"), spec).run_all();
    for (const std::string& isa : runnable_isas()) {
      for (const int32_t n_threads : {1, 2, 3}) {
        EXPECT_EQ(first_difference(Layer(cpu_rig(n_threads, isa), spec).run_all(), wanted), -1) << isa;
      }
    }
  }
}

TEST(delta, has_the_same_bits_in_every_chunking) {
  for (const DeltaSpec& spec : kSpecs) {
    Layer layer(cpu_rig(2), spec);
    Layer reference(reference_rig(), spec);
    const std::vector<float> wanted = layer.run_all();
    const std::vector<float> on_paper = reference.run_all();
    for (const int32_t chunk : {1, 2, 3, 7, 32, 64}) {
      EXPECT_EQ(first_difference(layer.run_in(chunk), wanted), -1) << "chunks of " << chunk;
      EXPECT_EQ(first_difference(reference.run_in(chunk), on_paper), -1) << "chunks of " << chunk;
    }
  }
}

// States kept behind rows 0 to 5, 31 and 63 of one slice: going on from each gives the rows of the whole, together in
// one step, again, and beside sequences that begin.
TEST(delta, goes_on_from_any_state_that_was_kept_and_leaves_it_as_it_was) {
  for (const DeltaSpec& spec : kSpecs) {
    for (Rig (*make)() : {+[] { return cpu_rig(2); }, &reference_rig}) {
      Layer layer(make(), spec);
      const std::vector<float> wanted = layer.run_all();
      Layer::Part whole{0, kTokens, kNoState, 0};
      std::vector<Layer::Part> parts = {{0, 5, kNoState, 20}};
      for (const int32_t row : {0, 1, 2, 3, 4, 5, 31, 63}) {
        const auto slot = static_cast<StateId>(1 + whole.more.size());
        whole.more.push_back({row, slot});
        parts.push_back({row + 1, std::min(row + 6, kTokens), slot, slot + 20});
      }
      EXPECT_EQ(first_difference(layer.run({whole}), wanted), -1);
      for (int i = 0; i < 2; ++i) {
        const std::vector<float> seen = layer.run(parts);
        int32_t at = 0;
        for (const Layer::Part& part : parts) {
          const int32_t n = part.end - part.begin;
          EXPECT_EQ(first_difference(rows_of(seen, at, at + n, layer.row_floats()),
                                     rows_of(wanted, part.begin, part.end, layer.row_floats())),
                    -1)
              << "from " << part.begin;
          at += n;
        }
      }
    }
  }
}

// The last inputs of the convolution are part of the state, and so are the matrices.
TEST(delta, another_state_gives_other_rows) {
  Layer layer(cpu_rig(2), kSpecs[0]);
  const std::vector<float> wanted = layer.run({{0, kTokens, kNoState, 0, {{31, 1}, {32, 2}}}});
  const std::vector<float> right = rows_of(wanted, 32, kTokens, layer.row_floats());
  EXPECT_EQ(first_difference(layer.run({{32, kTokens, 1, 3}}), right), -1);
  EXPECT_NE(first_difference(layer.run({{32, kTokens, 2, 3}}), right), -1);
  EXPECT_NE(first_difference(layer.run({{32, kTokens, kNoState, 3}}), right), -1);
}

}  // namespace
}  // namespace candor::testing
