// What adapters add to products, embeddings and experts: cpu against reference, and cpu against itself.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "conformance/rig.h"

namespace candor::testing::adapters {
namespace {

using backend::Activation;
using backend::AdapterTable;
using backend::AdapterTerm;
using backend::AdapterUse;
using backend::Weight;
using backend::WeightRole;

constexpr int32_t kIn = 160, kOut = 200, kRank = 32, kTokens = 64;

struct Text {
  int32_t first_token = 0;
  int32_t n_rows = 0;
  std::vector<AdapterUse> uses{};
};

// One adapter, two, the same by another scale, none, many rows.
std::vector<Text> texts() {
  return {{0, 3, {{0, 1.0f}}},  {3, 1, {{1, 0.5f}, {0, 1.0f}}}, {4, 5, {}},
          {9, 40, {{2, 1.0f}}}, {49, 1, {{0, 0.25f}}},          {50, 2, {{2, 0.5f}, {1, 1.0f}}}};
}

// A rig and the weights of three adapters: a thin one of the type, one with gains, another W.
class AdapterRig {
 public:
  AdapterRig(Rig rig, DType dtype) : rig_(std::move(rig)), dtype_(dtype) {
    rig_.reserve(6, 2 * kOut, kTokens);
    inputs_ = &rig_.upload_rows(random_values(kTokens * kIn, 1), kIn);
    products_ = &rig_.upload_rows(random_values(kTokens * kOut, 2), kOut);
    bias_ = &vector(random_values(kOut, 3, 0.5f));
    std::vector<float> gains = random_values(kOut, 4, 0.1f);
    std::vector<float> less_one = gains;
    for (float& gain : gains) gain += 1.0f;
    gains_ = &vector(gains);
    less_one_ = &vector(less_one);
  }

  // What becomes of products of the texts' rows.
  std::vector<float> adapt(const std::vector<Text>& texts) {
    return run(texts, [&](int32_t n) {
      const Activation src{0, n, kIn}, dst{1, n, kOut};
      const std::vector<AdapterTerm> terms = {thin(0, dst), with_gains(dst), another(dst)};
      rig_.ops().run(op::Embed{src, inputs_});
      rig_.ops().run(op::Embed{dst, products_});
      rig_.ops().run(op::Adapt{terms, src, {}});
      return dst;
    });
  }

  std::vector<float> embed(const std::vector<Text>& texts) {
    const std::vector<AdapterTable> tables = {
        {0, &rig_.upload_rows(random_values(kTokens * kRank, 11), kRank), &matrix(kOut, kRank, 12), 0.5f},
        {2, &rig_.upload_rows(random_values(kTokens * kOut, 13), kOut), nullptr, 1.0f}};
    return run(texts, [&](int32_t n) {
      const Activation dst{1, n, kOut};
      rig_.ops().run(op::Embed{dst, products_, 2.0f});
      rig_.ops().run(op::AdaptEmbedding{dst, tables, 2.0f});
      return dst;
    });
  }

  std::vector<float> mix(const std::vector<Text>& texts, bool weighs_inputs) {
    constexpr int32_t kExperts = 3, kFfn = 64;
    backend::MoeSpec spec;
    spec.n_experts = kExperts;
    spec.n_used = 2;
    spec.weighs_inputs = weighs_inputs;
    const auto& scores = rig_.upload_rows(random_values(kTokens * kExperts, 20), kExperts);
    std::vector<backend::Expert> experts;
    std::vector<backend::ExpertAdapter> adapters;
    for (int32_t i = 0; i < kExperts; ++i) {
      const auto seed = static_cast<uint64_t>(30 + 10 * i);
      experts.push_back({&matrix(kFfn, kIn, seed), &matrix(kFfn, kIn, seed + 1), &matrix(kIn, kFfn, seed + 2)});
      const auto add = [&](backend::ExpertPart part, AdapterId adapter, int64_t out, int64_t in, uint64_t at) {
        adapters.push_back({i, part, {adapter, &matrix(kRank, in, at), &matrix(out, kRank, at + 1), 1.5f}});
      };
      add(backend::ExpertPart::kGate, 0, kFfn, kIn, seed + 3);
      if (i != 1) add(backend::ExpertPart::kUp, 1, kFfn, kIn, seed + 5);
      add(backend::ExpertPart::kDown, 0, kIn, kFfn, seed + 7);
    }
    return run(texts, [&](int32_t n) {
      const Activation src{0, n, kIn}, dst{1, n, kIn};
      backend::MoeTerm term;
      term.experts = experts;
      term.spec = spec;
      term.scores = {2, n, kExperts};
      term.gate = {3, 2 * n, kFfn};
      term.up = {4, 2 * n, kFfn};
      term.outputs = {5, 2 * n, kIn};
      term.adapters = adapters;
      rig_.ops().run(op::Embed{src, inputs_});
      rig_.ops().run(op::Embed{term.scores, &scores});
      rig_.ops().run(op::Moe{dst, src, term});
      return dst;
    });
  }

 private:
  const Weight& matrix(int64_t out, int64_t in, uint64_t seed) {
    return rig_.upload(random_tensor("adapter", dtype_, {out, in}, seed, 0.1f).view(), WeightRole::kLinear);
  }
  const Weight& vector(const std::vector<float>& values) {
    const auto n = static_cast<int64_t>(values.size());
    return rig_.upload(tensor_of("vector", DType::kF32, {n}, values).view(), WeightRole::kVector);
  }
  AdapterTerm thin(AdapterId id, Activation dst) {
    AdapterTerm term{.adapter = id, .down = &matrix(kRank, kIn, 5), .up = &matrix(kOut, kRank, 6), .scale = 2.0f};
    term.dst = dst;
    return term;
  }
  AdapterTerm with_gains(Activation dst) {
    AdapterTerm term{.adapter = 1, .down = &matrix(kRank, kIn, 7), .up = &matrix(kOut, kRank, 8), .scale = 0.5f};
    term.gains = gains_;
    term.gains_less_one = less_one_;
    term.bias = bias_;
    term.dst = dst;
    return term;
  }
  AdapterTerm another(Activation dst) {
    AdapterTerm term{.adapter = 2, .up = &matrix(kOut, kIn, 9)};
    term.dst = dst;
    return term;
  }
  std::vector<float> run(const std::vector<Text>& texts, const std::function<Activation(int32_t n)>& body) {
    BatchBuilder builder;
    for (const Text& text : texts) {
      std::vector<TokenId> tokens(static_cast<size_t>(text.n_rows));
      std::iota(tokens.begin(), tokens.end(), text.first_token);
      builder.add(tokens, text.uses);
    }
    return rig_.run(builder.view(), [&] { return body(builder.n_rows()); });
  }

  Rig rig_;
  DType dtype_;
  const Weight *inputs_ = nullptr, *products_ = nullptr, *bias_ = nullptr, *gains_ = nullptr, *less_one_ = nullptr;
};

using Run = std::function<std::vector<float>(AdapterRig&, const std::vector<Text>&)>;

struct NamedRun {
  std::string name;
  Run run;
};

std::vector<NamedRun> runs() {
  return {
      {"products", [](AdapterRig& rig, const auto& texts) { return rig.adapt(texts); }},
      {"embeddings", [](AdapterRig& rig, const auto& texts) { return rig.embed(texts); }},
      {"experts", [](AdapterRig& rig, const auto& texts) { return rig.mix(texts, false); }},
      {"experts whose inputs are weighed", [](AdapterRig& rig, const auto& texts) { return rig.mix(texts, true); }}};
}

constexpr DType kDtypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0};

std::vector<float> on_cpu(const Run& run, DType dtype, const std::vector<Text>& texts, int32_t n_threads = 2,
                          const std::string& isa = {}) {
  AdapterRig rig(cpu_rig(n_threads, isa), dtype);
  return run(rig, texts);
}

TEST(adapters, add_what_the_reference_says) {
  for (const DType dtype : kDtypes) {
    for (const auto& [name, run] : runs()) {
      AdapterRig reference(reference_rig(), dtype);
      const std::vector<float> wanted = run(reference, texts());
      const std::vector<float> seen = on_cpu(run, dtype, texts());
      ASSERT_EQ(seen.size(), wanted.size());
      double error = 0.0, size = 0.0;
      for (size_t i = 0; i < seen.size(); ++i) {
        error += std::pow(static_cast<double>(seen[i]) - static_cast<double>(wanted[i]), 2);
        size += std::pow(static_cast<double>(wanted[i]), 2);
      }
      const bool rounds_inputs = dtype == DType::kBF16 || dtype == DType::kQ8_0;
      EXPECT_LT(std::sqrt(error / size), rounds_inputs ? 0.02 : 1e-6) << name << " " << dtype_info(dtype).name;
    }
  }
}

TEST(adapters, give_the_same_bits_whatever_threads_instruction_sets_and_neighbours) {
  for (const DType dtype : kDtypes) {
    for (const auto& [name, run] : runs()) {
      const std::vector<float> wanted = on_cpu(run, dtype, texts(), 1);
      for (const std::string& isa : runnable_isas()) {
        for (const int32_t n_threads : {1, 3, 8}) {
          EXPECT_EQ(first_difference(on_cpu(run, dtype, texts(), n_threads, isa), wanted), -1) << name << " " << isa;
        }
      }
      std::vector<float> one_by_one;
      for (const Text& text : texts()) {
        for (int32_t row = 0; row < text.n_rows; ++row) {
          const std::vector<float> alone = on_cpu(run, dtype, {{text.first_token + row, 1, text.uses}}, 3);
          one_by_one.insert(one_by_one.end(), alone.begin(), alone.end());
        }
      }
      EXPECT_EQ(first_difference(one_by_one, wanted), -1) << name;
    }
  }
}

TEST(adapters, leave_rows_without_any_as_they_are) {
  std::vector<Text> plain = texts();
  for (Text& text : plain) text.uses.clear();
  for (const auto& [name, run] : runs()) {
    const std::vector<float> base = on_cpu(run, DType::kF32, plain);
    const std::vector<float> seen = on_cpu(run, DType::kF32, texts());
    const size_t n_cols = base.size() / 52;
    for (size_t row = 0; row < 52; ++row) {
      const bool is_plain = row >= 4 && row < 9;
      const auto at = static_cast<std::ptrdiff_t>(row * n_cols), end = static_cast<std::ptrdiff_t>((row + 1) * n_cols);
      const bool is_same = std::equal(base.begin() + at, base.begin() + end, seen.begin() + at);
      EXPECT_TRUE(is_same || !is_plain) << name << " " << row;
    }
    EXPECT_NE(first_difference(base, seen), -1) << name;
  }
}

}  // namespace
}  // namespace candor::testing::adapters
