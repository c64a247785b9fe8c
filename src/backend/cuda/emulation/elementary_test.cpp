// Elementary functions of kernels against the portable table, bit for bit, over floats of every size.

#include "backend/cuda/emulation/language_host.h"
// Behind the words in which it is written.
#include "backend/cuda/kernels/elementary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "platform/float_mode.h"

namespace candor::backend::cuda {
namespace {

using kernels::KernelTable;

// Every `step`th pattern of bits, and the borders that the functions have.
std::vector<float> floats_of_every_size(uint32_t step) {
  std::vector<float> all;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += step) {
    all.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const float border :
       {0.0f, 0.625f, 0.9f, 1.2727922f, 6.5f, 7.0f, 9.192388f, 87.0f, 88.0f, 1e-38f, 1.1754944e-38f,
        std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const int32_t off : {-2, -1, 0, 1, 2}) {
      const float x = std::bit_cast<float>(std::bit_cast<int32_t>(border) + off);
      all.push_back(x);
      all.push_back(-x);
    }
  }
  while (all.size() % 16 != 0) all.push_back(1.0f);
  return all;
}

class elementary_functions : public ::testing::Test {
 protected:
  using Row = void (*)(const float* gate, const float* up, int64_t n, float* dst);

  // The function of each float, and what the table's row makes of all of them.
  template <class Fn>
  void compare(Fn&& fn, const std::vector<float>& wanted) {
    for (size_t i = 0; i < x_.size(); ++i) {
      const float seen = fn(x_[i]);
      if (seen != seen && wanted[i] != wanted[i]) continue;
      ASSERT_EQ(bits_of(seen), bits_of(wanted[i])) << x_[i];
    }
  }
  template <class Fn>
  void compare_row(Fn&& fn, Row row) {
    std::vector<float> wanted(x_.size());
    row(x_.data(), nullptr, static_cast<int64_t>(x_.size()), wanted.data());
    compare(fn, wanted);
  }

  platform::ScopedFloatMode mode_;
  const KernelTable& table_ = **kernels::select_table("portable");
  std::vector<float> x_ = floats_of_every_size(8191);
};

}  // namespace

TEST_F(elementary_functions, of_gates_have_the_bits_of_portable) {
  compare_row(silu_of, table_.silu_gate);
  compare_row(gelu_of, table_.gelu_gate);
  compare_row(gelu_erf_of, table_.gelu_erf_gate);
  compare_row(relu_squared_of, table_.relu_squared_gate);
  compare_row(sigmoid_of, table_.sigmoid_gate);
}

// Which a comparison alone may let through, and a maximum not: no operation makes them.
TEST_F(elementary_functions, relu_has_the_bits_of_portable_but_for_denormals) {
  std::erase_if(x_, [](float x) { return (bits_of(x) & 0x7f800000u) == 0 && (bits_of(x) & 0x7fffffffu) != 0; });
  compare_row(relu_of, table_.relu_gate);
}

TEST_F(elementary_functions, a_clamped_silu_of_two_numbers_has_the_bits_of_portable) {
  std::vector<float> wanted(x_.size());
  const std::vector<float> up(x_.rbegin(), x_.rend());
  table_.clamped_silu_gate(x_.data(), up.data(), static_cast<int64_t>(x_.size()), wanted.data());
  auto at = up.begin();
  compare([&](float x) { return clamped_silu_of(x, *at++); }, wanted);
}

TEST_F(elementary_functions, exp_has_the_bits_of_portable) {
  std::vector<float> wanted(x_.size());
  table_.exp_sum(x_.data(), 0.0f, static_cast<int64_t>(x_.size()), wanted.data());
  compare([](float x) { return exp_of(sub_rn(x, 0.0f)); }, wanted);
  compare([](float x) { return x <= 88.0f || x != x ? exp_capped_of(x) : exp_of(x); }, wanted);
}

TEST_F(elementary_functions, caps_have_the_bits_of_portable) {
  std::vector<float> wanted(x_.size());
  for (const float cap : {1.0f, 30.0f, 50.0f}) {
    table_.soft_cap(x_.data(), cap, static_cast<int64_t>(x_.size()), wanted.data());
    compare([&](float x) { return soft_cap_of(x, cap); }, wanted);
  }
  table_.soft_cap(x_.data(), 1.0f, static_cast<int64_t>(x_.size()), wanted.data());
  compare([](float x) { return mul_rn(tanh_of(x), 1.0f); }, wanted);
}

// As the step of a state space, which writes it where nothing is multiplied by anything but 1.
TEST_F(elementary_functions, softplus_has_the_bits_of_portable) {
  x_ = floats_of_every_size(1 << 17);
  std::vector<float> wanted(x_.size());
  const float one = 1.0f;
  float state = 0.0f;
  for (size_t i = 0; i < x_.size(); ++i) {
    table_.ssm_rows({.x = &one,
                     .b = &one,
                     .c = &one,
                     .dt = &x_[i],
                     .n_rows = 1,
                     .state_dim = 1,
                     .head_dim = 1,
                     .rate = -1.0f,
                     .least_step = -std::numeric_limits<float>::infinity(),
                     .most_step = std::numeric_limits<float>::infinity(),
                     .to = &state,
                     .dst = &wanted[i]});
  }
  compare([](float x) { return softplus_of(add_rn(x, 0.0f)); }, wanted);
}

}  // namespace candor::backend::cuda
