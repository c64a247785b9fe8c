#include "mixed/random_program.h"

#include <algorithm>
#include <iterator>

namespace candor::testing::mixed {
namespace {

// One random operation, on every bench; `seed` decides it.
class Program {
 public:
  Program(std::vector<Bench*> benches, bool has_products) : benches_(std::move(benches)), has_products_(has_products) {
    for (Bench* bench : benches_) weights_.push_back(upload_all(*bench, has_products));
  }

  void run(uint64_t seed) {
    for (size_t i = 0; i < benches_.size(); ++i) {
      SplitMix random(seed);
      run_one(*benches_[i], weights_[i], random);
    }
  }

 private:
  static int32_t below(SplitMix& random, int32_t n) {
    return static_cast<int32_t>(random.below(static_cast<uint64_t>(n)));
  }

  void run_one(Bench& bench, const Weights& weights, SplitMix& random) const {
    const int32_t n_rows = 1 + below(random, kRows);
    const int32_t a = below(random, kSlots);
    const int32_t b = (a + 1 + below(random, kSlots - 1)) % kSlots;
    const int32_t c = below(random, kSlots);
    const Activation x{a, n_rows, kCols};
    const Activation y{b, n_rows, kCols};
    const Activation wide{c, n_rows, 2 * kCols};
    const size_t side = random.below(2);
    switch (random.below(has_products_ ? 14 : 11)) {
      case 0:
        return bench.run(op::AddPositions{{a, kRows, kCols}, weights.table[side]});
      case 1:
        return bench.run(op::Embed{{a, kRows, kCols}, weights.table[side], 0.5f});
      case 2:
        return bench.run(op::Add{x, y, 0.25f});
      case 3:
        return bench.run(op::Norm{x, random.below(2) == 0 ? x : y, backend::NormWeights(*weights.gain), {}});
      case 4:
        return bench.run(op::Gate{x, y, x, backend::GateKind::kSilu});
      case 5:
        if (c == a || c == b) return;
        return bench.run(op::Zip{wide, x, y, 8});
      case 6:
        if (c == a || c == b) return;
        return bench.run(op::Unzip{x, y, wide, 16});
      case 7:
        return bench.run(op::Clamp{y, x, -2.0f, 2.0f});
      case 8:
        return bench.run(op::Activate{wide, backend::GateKind::kGelu});
      case 9:
        return bench.run(op::Scale{x, 0.5f, random.below(2) == 0 ? weights.gain : nullptr});
      case 10:
        return write_or_read(bench, x, random);
      default:
        return run_product(bench, weights, random, {x, y, wide});
    }
  }

  static void write_or_read(Bench& bench, Activation x, SplitMix& random) {
    if (random.below(2) == 0) {
      bench.read(x);
      return;
    }
    std::vector<float> rows(static_cast<size_t>(x.n_rows * x.n_cols));
    for (float& value : rows) value = random.normal();
    bench.write(x, rows);
  }

  struct Operands {
    Activation x, y, wide;
  };
  // One, or two terms on any sides; the input may be overwritten by the only one.
  static void run_product(Bench& bench, const Weights& weights, SplitMix& random, const Operands& all) {
    const LinearTerm first{weights.square[random.below(2)], random.below(2) == 0 ? weights.gain : nullptr, all.y};
    const LinearTerm second{weights.wide[random.below(2)], nullptr, all.wide};
    const bool has_two = all.wide.slot != all.x.slot && all.wide.slot != all.y.slot;
    if (has_two && random.below(2) == 0) {
      bench.run(op::Linear{std::array{first, second}, all.x});
    } else {
      bench.run(op::Linear{std::array{first}, all.x});
    }
    bench.run(op::Clamp{all.y, all.y, -3.0f, 3.0f});
  }

  std::vector<Bench*> benches_;
  bool has_products_;
  std::vector<Weights> weights_;
};

}  // namespace

void expect_same_slots(Bench& a, Bench& b, const std::string& where) {
  for (int32_t slot = 0; slot < kSlots; ++slot) {
    const Activation whole{slot, kRows, 2 * kCols};
    const std::vector<float> expected = a.read(whole);
    EXPECT_LT(std::ranges::count(expected, 0.0f), std::ssize(expected) / 2) << where << ", slot " << slot;
    ASSERT_EQ(b.read(whole), expected) << where << ", slot " << slot;
  }
}

void expect_same_bits(std::unique_ptr<Backend> device, bool has_products, uint64_t n_programs) {
  auto mixed = std::make_unique<MixedBackend>(std::move(device), make_fast_cpu());
  mixed->place_next(in_turn());
  MixedBackend& both = *mixed;
  Bench two(std::move(mixed));
  Bench one(make_fast_cpu());
  Program program({&one, &two}, has_products);
  for (uint64_t i = 0; i < n_programs; ++i) {
    for (uint64_t step = 0; step < 40; ++step) program.run(1000 * i + step);
    two.backend().end_step();
    one.backend().end_step();
    expect_same_slots(one, two, "program " + std::to_string(i));
    one.begin();
    two.begin();
  }
  EXPECT_GT(both.crossings().n_copies, static_cast<int64_t>(n_programs));
  EXPECT_TRUE(both.health());
}

}  // namespace candor::testing::mixed
