// The kernels of layers that keep a state against the portable table, bit for bit: outputs, and the states that are
// kept.

#include "backend/cuda/recurrent_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/emulation/device_test_support.h"
#include "kernels/kernels.h"
#include "platform/float_mode.h"

namespace candor::backend::cuda {
namespace {

// The rows of a sequence; what is kept behind which of them, besides the last.
struct RecurrentRows {
  int32_t n_rows = 1;
  bool has_past = false;
  std::vector<int32_t> kept{};
};

std::vector<float> recurrent_floats(int64_t n, uint32_t seed, float low, float high) {
  std::mt19937 random(seed);
  std::vector<float> numbers(static_cast<size_t>(n));
  for (float& x : numbers) x = low + (high - low) * 0x1p-32f * static_cast<float>(random());
  return numbers;
}

void make_odd(std::vector<float>& numbers) {
  std::mt19937 random(99);
  const float odd[] = {-0.0f, 0.0f, 1e15f, -1e15f, 1e-37f, -3e-38f, 90.0f, -90.0f};
  const float any[] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e30f, -1e38f};
  for (float& x : numbers) {
    if (random() % 61 == 0) x = odd[random() % std::size(odd)];
    if (random() % 9973 == 0) x = any[random() % std::size(any)];
  }
}

int64_t first_other_state(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return static_cast<int64_t>(i);
  }
  return -1;
}

class recurrent_on_device : public ::testing::Test {
 protected:
  // Slots of states in odd places: first those that slices begin from, then those of saves.
  void set_rows(const std::vector<RecurrentRows>& all, int64_t slot_floats) {
    slices_.clear();
    saves_.clear();
    slot_floats_ = slot_floats;
    n_rows_ = 0;
    auto slot = static_cast<int32_t>(2 * all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      StateSlice slice{.first_row = n_rows_,
                       .n_rows = all[i].n_rows,
                       .slot = all[i].has_past ? static_cast<int32_t>(2 * i + 1) : -1,
                       .first_save = static_cast<int32_t>(saves_.size())};
      for (const int32_t row : all[i].kept) saves_.push_back({n_rows_ + row, slot++});
      n_rows_ += all[i].n_rows;
      saves_.push_back({n_rows_ - 1, slot++});
      slice.n_saves = static_cast<int32_t>(saves_.size()) - slice.first_save;
      slices_.push_back(slice);
    }
    states_ = recurrent_floats(slot * slot_floats, 1, -1.0f, 1.0f);
    device_states_ = upload(states_);
  }

  StatePlaces places() {
    return {.base = device_states_,
            .slot_floats = slot_floats_,
            .slices = upload(slices_),
            .saves = upload(saves_),
            .n_slices = static_cast<int32_t>(slices_.size())};
  }

  const float* state_before(const StateSlice& slice) const {
    return slice.slot < 0 ? nullptr : states_.data() + slice.slot * slot_floats_;
  }

  // fn(first row, n rows, from, to) of each slice's rows up to a save, n at most `most`.
  void for_rows(int32_t most, const std::function<void(int32_t, int32_t, const float*, float*)>& fn) {
    for (const StateSlice& slice : slices_) {
      const float* from = state_before(slice);
      int32_t row = slice.first_row;
      for (int32_t i = slice.first_save; i < slice.first_save + slice.n_saves; ++i) {
        const RowSave& save = saves_[static_cast<size_t>(i)];
        float* to = states_.data() + save.slot * slot_floats_;
        while (row <= save.row) {
          const int32_t n = std::min(most, save.row + 1 - row);
          fn(row, n, from, to);
          from = to;
          row += n;
        }
      }
    }
  }

  template <class T>
  T* upload(const std::vector<T>& values) {
    memory_.push_back(*DeviceMemory::make(*device_, values.size() * sizeof(T)));
    device_->copy_in(memory_.back().data(), values.data(), values.size() * sizeof(T));
    return memory_.back().template as<T>();
  }

  void expect_same(const std::vector<float>& wanted, const float* memory, const char* what) {
    ASSERT_EQ(device_->status() ? "" : device_->status().error().message, "");
    std::vector<float> seen(wanted.size());
    device_->copy_out(seen.data(), memory, seen.size() * sizeof(float));
    const int64_t i = first_other_state(wanted, seen);
    ASSERT_EQ(i, -1) << what << ": wanted " << wanted[static_cast<size_t>(i)] << ", seen "
                     << seen[static_cast<size_t>(i)];
  }

  void expect_conv(const ConvRowsArgs& shape, bool is_odd, const std::vector<RecurrentRows>& rows);
  void expect_delta(DeltaRowsArgs args, bool is_odd, const std::vector<RecurrentRows>& rows);
  void expect_ssm(SsmRowsArgs args, bool is_odd, const std::vector<RecurrentRows>& rows);

  platform::ScopedFloatMode mode_;
  const kernels::KernelTable& table_ = **kernels::select_table("portable");
  std::unique_ptr<Device> device_ = make_test_device();
  std::vector<DeviceMemory> memory_;
  std::vector<StateSlice> slices_;
  std::vector<RowSave> saves_;
  std::vector<float> states_;
  float* device_states_ = nullptr;
  int64_t slot_floats_ = 0;
  int32_t n_rows_ = 0;
};

void recurrent_on_device::expect_conv(const ConvRowsArgs& shape, bool is_odd, const std::vector<RecurrentRows>& rows) {
  const int32_t n_kept = shape.n_taps - 1;
  set_rows(rows, int64_t{n_kept} * shape.n_channels + 5);
  std::vector<float> x = recurrent_floats(int64_t{n_rows_} * shape.n_channels, 2, -2.0f, 2.0f);
  if (is_odd) make_odd(x);
  const auto taps = recurrent_floats(int64_t{shape.n} * shape.n_taps, 3, -1.0f, 1.0f);
  const auto bias = recurrent_floats(shape.n, 4, -1.0f, 1.0f);
  ConvRowsArgs args = shape;
  args.states = places();
  args.x = upload(x);
  args.taps = upload(taps);
  args.bias = is_odd ? nullptr : upload(bias);
  run_conv(*device_, args);
  for (const StateSlice& slice : slices_) {
    float* first = x.data() + int64_t{slice.first_row} * shape.n_channels;
    const float* past = state_before(slice);
    for (int32_t i = slice.first_save; i < slice.first_save + slice.n_saves; ++i) {
      const RowSave& save = saves_[static_cast<size_t>(i)];
      for (int32_t tap = 0; tap < n_kept; ++tap) {
        const int64_t at = save.row - slice.first_row + 1 + tap - n_kept;
        for (int32_t c = shape.first; c < shape.first + shape.n; ++c) {
          const float* src = at >= 0 ? first + at * shape.n_channels : past + (at + n_kept) * shape.n_channels;
          states_[static_cast<size_t>(save.slot * slot_floats_ + int64_t{tap} * shape.n_channels + c)] =
              at < 0 && past == nullptr ? 0.0f : src[c];
        }
      }
    }
    table_.causal_conv({.x = first,
                        .n_rows = slice.n_rows,
                        .n_channels = shape.n_channels,
                        .past = past,
                        .taps = taps.data(),
                        .n_taps = shape.n_taps,
                        .bias = is_odd ? nullptr : bias.data(),
                        .first = shape.first,
                        .has_silu = shape.has_silu,
                        .begin = shape.first,
                        .end = shape.first + shape.n});
  }
  expect_same(x, args.x, "rows");
  expect_same(states_, device_states_, "states");
}

void recurrent_on_device::expect_delta(DeltaRowsArgs args, bool is_odd, const std::vector<RecurrentRows>& rows) {
  args.heads_at = 7;
  const int64_t k_width = int64_t{args.n_k_heads} * args.k_dim;
  const int64_t v_width = int64_t{args.n_v_heads} * args.v_dim;
  const int64_t n_gates = args.n_v_heads * (args.has_channel_gates ? args.k_dim : 1);
  set_rows(rows, args.heads_at + int64_t{args.n_v_heads} * args.k_dim * args.v_dim);
  std::vector<float> qkv = recurrent_floats(n_rows_ * (2 * k_width + v_width), 2, -2.0f, 2.0f);
  std::vector<float> alpha = recurrent_floats(n_rows_ * n_gates, 3, -3.0f, 3.0f);
  if (is_odd) make_odd(qkv);
  if (is_odd) make_odd(alpha);
  const auto beta = recurrent_floats(int64_t{n_rows_} * args.n_v_heads, 4, -3.0f, 3.0f);
  const auto rate = recurrent_floats(args.n_v_heads, 5, -2.0f, -0.01f);
  const auto bias = recurrent_floats(n_gates, 6, -1.0f, 1.0f);
  std::vector<float> dst(static_cast<size_t>(n_rows_ * v_width), -1.0f);
  args.states = places();
  args.dst = upload(dst);
  args.qkv = upload(qkv);
  args.alpha = upload(alpha);
  args.beta = upload(beta);
  args.rate = upload(rate);
  args.bias = upload(bias);
  args.q_scale = 1.0f / std::sqrt(static_cast<float>(args.k_dim));
  run_delta_rule(*device_, args);
  for (int32_t head = 0; head < args.n_v_heads; ++head) {
    const int32_t of_key = args.has_tiled_heads ? head % args.n_k_heads : head / (args.n_v_heads / args.n_k_heads);
    const int64_t gate = int64_t{head} * (args.has_channel_gates ? args.k_dim : 1);
    const int64_t at = args.heads_at + int64_t{head} * args.k_dim * args.v_dim;
    for_rows(1, [&](int32_t row, int32_t, const float* from, float* to) {
      const float* of_row = qkv.data() + row * (2 * k_width + v_width);
      const float* alphas = alpha.data() + row * n_gates + gate;
      table_.delta_row({.q = of_row + int64_t{of_key} * args.k_dim,
                        .k = of_row + k_width + int64_t{of_key} * args.k_dim,
                        .v = of_row + 2 * k_width + int64_t{head} * args.v_dim,
                        .k_dim = args.k_dim,
                        .v_dim = args.v_dim,
                        .q_scale = args.q_scale,
                        .rate = rate[static_cast<size_t>(head)],
                        .alpha = *alphas + bias[static_cast<size_t>(gate)],
                        .alphas = args.has_channel_gates ? alphas : nullptr,
                        .biases = bias.data() + gate,
                        .beta = beta[static_cast<size_t>(row * args.n_v_heads + head)],
                        .share_scale = args.share_scale,
                        .from = from == nullptr ? nullptr : from + at,
                        .to = to + at,
                        .dst = dst.data() + row * v_width + int64_t{head} * args.v_dim});
    });
  }
  expect_same(dst, args.dst, "rows");
  expect_same(states_, device_states_, "states");
}

void recurrent_on_device::expect_ssm(SsmRowsArgs args, bool is_odd, const std::vector<RecurrentRows>& rows) {
  args.heads_at = 3;
  const int64_t x_width = int64_t{args.n_heads} * args.head_dim;
  const int64_t bc_width = int64_t{args.n_groups} * args.state_dim;
  const int64_t width = x_width + 2 * bc_width;
  set_rows(rows, args.heads_at + int64_t{args.n_heads} * args.state_dim * args.head_dim);
  std::vector<float> xbc = recurrent_floats(n_rows_ * width, 2, -2.0f, 2.0f);
  std::vector<float> dt = recurrent_floats(int64_t{n_rows_} * args.n_heads, 3, -3.0f, 3.0f);
  if (is_odd) make_odd(xbc);
  if (is_odd) make_odd(dt);
  const auto rate = recurrent_floats(args.n_heads, 5, -2.0f, -0.01f);
  const auto bias = recurrent_floats(args.n_heads, 6, -1.0f, 1.0f);
  const auto skip = recurrent_floats(args.n_heads, 7, -1.0f, 1.0f);
  std::vector<float> dst(static_cast<size_t>(n_rows_ * x_width), -1.0f);
  args.states = places();
  args.dst = upload(dst);
  args.xbc = upload(xbc);
  args.dt = upload(dt);
  args.rate = upload(rate);
  args.bias = upload(bias);
  args.skip = upload(skip);
  run_ssm_scan(*device_, args);
  for (int32_t head = 0; head < args.n_heads; ++head) {
    const int64_t at = args.heads_at + int64_t{head} * args.state_dim * args.head_dim;
    const int64_t group = head / (args.n_heads / args.n_groups) * int64_t{args.state_dim};
    const auto i = static_cast<size_t>(head);
    for_rows(kernels::kSsmRows, [&](int32_t row, int32_t n, const float* from, float* to) {
      const float* of_row = xbc.data() + row * width;
      table_.ssm_rows({.x = of_row + int64_t{head} * args.head_dim,
                       .b = of_row + x_width + group,
                       .c = of_row + x_width + bc_width + group,
                       .stride = width,
                       .dt = dt.data() + row * args.n_heads + head,
                       .dt_stride = args.n_heads,
                       .n_rows = n,
                       .state_dim = args.state_dim,
                       .head_dim = args.head_dim,
                       .bias = bias[i],
                       .rate = rate[i],
                       .skip = skip[i],
                       .least_step = args.least_step,
                       .most_step = args.most_step,
                       .from = from == nullptr ? nullptr : from + at,
                       .to = to + at,
                       .dst = dst.data() + row * x_width + int64_t{head} * args.head_dim,
                       .dst_stride = x_width});
    });
  }
  expect_same(dst, args.dst, "rows");
  expect_same(states_, device_states_, "states");
}

const std::vector<RecurrentRows> kSomeRows = {{1, true}, {13, false, {0, 5, 6}}, {9, true, {7}}, {1, false}, {2, true}};

}  // namespace

TEST_F(recurrent_on_device, convolutions_have_the_bits_of_portable) {
  for (const int32_t n_taps : {2, 3, 4, 8}) {
    for (const bool is_odd : {false, true}) {
      SCOPED_TRACE(std::to_string(n_taps) + (is_odd ? " odd" : ""));
      expect_conv({.n_channels = 150, .n = 150, .n_taps = n_taps, .has_silu = !is_odd}, is_odd, kSomeRows);
      expect_conv({.n_channels = 150, .first = 40, .n = 20, .n_taps = n_taps}, is_odd, kSomeRows);
    }
  }
}

TEST_F(recurrent_on_device, delta_rules_have_the_bits_of_portable) {
  for (const auto& [k_dim, v_dim] : {std::pair{64, 64}, {128, 128}, {20, 37}, {128, 200}, {48, 16}, {512, 40}}) {
    for (const bool is_odd : {false, true}) {
      SCOPED_TRACE(std::to_string(k_dim) + " " + std::to_string(v_dim) + (is_odd ? " odd" : ""));
      DeltaRowsArgs args{.n_k_heads = 2, .n_v_heads = 4, .k_dim = k_dim, .v_dim = v_dim};
      expect_delta(args, is_odd, kSomeRows);
      args.has_tiled_heads = true;
      args.has_channel_gates = true;
      args.share_scale = 2.0f;
      expect_delta(args, is_odd, kSomeRows);
    }
  }
}

TEST_F(recurrent_on_device, state_spaces_have_the_bits_of_portable) {
  for (const auto& [state_dim, head_dim] : {std::pair{128, 64}, {16, 80}, {9, 20}, {512, 64}}) {
    for (const bool is_odd : {false, true}) {
      SCOPED_TRACE(std::to_string(state_dim) + " " + std::to_string(head_dim) + (is_odd ? " odd" : ""));
      SsmRowsArgs args{.n_heads = 4, .n_groups = 2, .state_dim = state_dim, .head_dim = head_dim};
      args.most_step = std::numeric_limits<float>::infinity();
      expect_ssm(args, is_odd, kSomeRows);
      args.least_step = 0.1f;
      args.most_step = 1.5f;
      expect_ssm(args, is_odd, {{130, true, {3, 4, 100}}});
    }
  }
}

}  // namespace candor::backend::cuda
