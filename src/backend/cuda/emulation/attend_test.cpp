// Attention's kernels against the portable table, bit for bit: what store_pages leaves in pages, and each row of
// attend_rows against that row alone.

#include "backend/cuda/attend_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cuda/emulation/device_test_support.h"
#include "kernels/attend.h"
#include "kernels/kernels.h"
#include "platform/float_mode.h"

namespace candor::backend::cuda {
namespace {

using kernels::KvFormat;

// Rows of a step: a sequence with n_past tokens, of which the rows from group_begin on see one another.
struct TestSlice {
  int32_t n_past = 0;
  int32_t n_rows = 1;
  int32_t group_begin = -1;  // of the slice; -1: none
  int32_t n_tokens() const { return n_past + n_rows; }
  int32_t group_end(int32_t i) const { return group_begin >= 0 && i >= group_begin ? n_tokens() : 0; }
};

// A few of the numbers become such as no model has; all of them stay numbers, or not.
enum class Adverse : uint8_t { kNone, kNumbers, kAny };
void make_adverse(Adverse kind, std::vector<float>& numbers, uint64_t seed) {
  if (kind == Adverse::kNone) return;
  std::mt19937 random(static_cast<uint32_t>(seed));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float large[] = {40.0f, -40.0f, 300.0f, -300.0f, 1e-37f, -3e-38f, -0.0f, 0.0f};
  const float any[] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 1e9f, -1e17f, 1e38f, -1e38f};
  for (float& x : numbers) {
    if (random() % 61 == 0) x = large[random() % std::size(large)];
    if (kind == Adverse::kAny && random() % 9973 == 0) x = any[random() % std::size(any)];
  }
}

struct AttendCase {
  KvFormat format = KvFormat::kBf16;
  int32_t head_dim = 64;
  int32_t n_heads = 4;
  int32_t n_kv_heads = 2;
  int32_t latent_dim = 0;
  int32_t window = 0;
  int32_t chunk = 0;
  int32_t ahead = 0;
  float softcap = 0.0f;
  bool has_slopes = false;
  bool has_sinks = false;
  int32_t bias_reach = 0;
  Adverse adverse = Adverse::kNone;
  std::vector<TestSlice> slices{};

  int32_t value_dim() const { return latent_dim > 0 ? latent_dim : head_dim; }
  int32_t n_planes() const { return latent_dim > 0 ? 1 : 2; }
  int32_t rotated_dims() const { return format == KvFormat::kQ4 ? kernels::rotated_dims(head_dim, latent_dim) : 0; }
};

std::vector<float> attend_floats(int64_t n, uint64_t seed, float amplitude = 1.0f) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<float> row(static_cast<size_t>(n));
  for (float& x : row) x = amplitude * 0x1p-30f * static_cast<float>(static_cast<int32_t>(random()));
  return row;
}

// What a case has in memory, on the host and on the device.
class AttendBench {
  static constexpr size_t kAlignment = 64;

 public:
  AttendBench(const AttendCase& c, Device& device) : c_(c), device_(device) {
    for (const TestSlice& slice : c.slices) {
      max_blocks_ = std::max(max_blocks_, (slice.n_tokens() + kernels::kPageTokens - 1) / kernels::kPageTokens);
    }
    const auto n_blocks = static_cast<int32_t>(c.slices.size()) * max_blocks_;
    for (int32_t i = 0; i < n_blocks; ++i) block_table_.push_back(n_blocks - 1 - i);
    page_bytes_ = kernels::kv_page_bytes(c.head_dim, c.format);
    block_bytes_ = page_bytes_ * static_cast<size_t>(c.n_kv_heads * c.n_planes());
    pool_.assign(block_bytes_ * static_cast<size_t>(n_blocks) + kAlignment, std::byte{0xff});
    device_pool_ = upload(pool_);
    device_table_ = upload(block_table_);
    for (size_t i = 0; i < c.slices.size(); ++i) {
      const int64_t n = int64_t{c.slices[i].n_tokens()} * c.n_kv_heads * c.head_dim;
      k_.push_back(attend_floats(n, 10 * i + 1));
      v_.push_back(attend_floats(n, 10 * i + 2));
      make_adverse(c.adverse, k_.back(), 10 * i + 3);
      make_adverse(c.adverse, v_.back(), 10 * i + 4);
      n_rows_ += c.slices[i].n_rows;
    }
    q_ = attend_floats(int64_t{n_rows_} * c.n_heads * c.head_dim, 5, 2.0f);
    make_adverse(c.adverse, q_, 6);
    slopes_ = attend_floats(c.n_heads, 7, 0.1f);
    sinks_ = attend_floats(c.n_heads, 8, 3.0f);
    biases_ = attend_floats(int64_t{c.n_heads} * (2 * c.bias_reach + 1), 9, 2.0f);
  }

  // What was there before the step, in two steps, then the rows of the step.
  void store() {
    std::vector<TestSlice> before;
    std::vector<TestSlice> more;
    for (const TestSlice& slice : c_.slices) {
      const int32_t cut = slice.n_past / 3;
      before.push_back({0, cut});
      more.push_back({cut, slice.n_past - cut});
    }
    store(before);
    store(more);
    store(c_.slices);
  }

  bool pools_are_equal() {
    std::vector<std::byte> pool(pool_.size() - kAlignment);
    device_.copy_out(pool.data(), device_pool_, pool.size());
    return std::memcmp(pool.data(), aligned(pool_), pool.size()) == 0;
  }

  std::vector<float> expected() {
    const int32_t group = c_.n_heads / c_.n_kv_heads;
    std::vector<float> out(static_cast<size_t>(n_rows_ * c_.n_heads * c_.value_dim()));
    std::vector<std::byte> scratch(kernels::attend_scratch_bytes(c_.head_dim) + kAlignment);
    int64_t row = 0;
    for (size_t seq = 0; seq < c_.slices.size(); ++seq) {
      for (int32_t i = 0; i < c_.slices[seq].n_rows; ++i, ++row) {
        for (int32_t kv_head = 0; kv_head < c_.n_kv_heads; ++kv_head) {
          const int32_t head = kv_head * group;
          const kernels::AttendArgs args{
              .pages = host_pages(seq, kv_head),
              .q = q_.data() + (row * c_.n_heads + head) * c_.head_dim,
              .q_stride = int64_t{c_.n_heads} * c_.head_dim,
              .dst = out.data() + (row * c_.n_heads + head) * c_.value_dim(),
              .dst_stride = int64_t{c_.n_heads} * c_.value_dim(),
              .n_rows = 1,
              .n_group_heads = group,
              .head_dim = c_.head_dim,
              .first_position = c_.slices[seq].n_past + i,
              .window_tokens = c_.window,
              .scale = 1.0f / std::sqrt(static_cast<float>(c_.head_dim)),
              .softcap = c_.softcap,
              .slopes = c_.has_slopes ? slopes_.data() + head : nullptr,
              .sinks = c_.has_sinks ? sinks_.data() + head : nullptr,
              .latent_dim = c_.latent_dim,
              .chunk_tokens = c_.chunk,
              .group_end = c_.slices[seq].group_end(i),
              .ahead_tokens = c_.ahead,
              .biases = c_.bias_reach > 0 ? biases_.data() + head * (2 * c_.bias_reach + 1) : nullptr,
              .bias_reach = c_.bias_reach};
          table_.attend(args, aligned(scratch));
        }
      }
    }
    return out;
  }

  // As a device with so many processors shares it out.
  std::vector<float> computed(int32_t n_processors) {
    const size_t n = static_cast<size_t>(n_rows_ * c_.n_heads * c_.value_dim());
    AttendRowsArgs args{.pages = device_pages(),
                        .q = upload(q_),
                        .dst = upload(std::vector<float>(n, -1.0f)),
                        .rows = upload(places(c_.slices)),
                        .slopes = c_.has_slopes ? upload(slopes_) : nullptr,
                        .sinks = c_.has_sinks ? upload(sinks_) : nullptr,
                        .biases = c_.bias_reach > 0 ? upload(biases_) : nullptr,
                        .n_rows = n_rows_,
                        .n_heads = c_.n_heads,
                        .n_kv_heads = c_.n_kv_heads,
                        .head_dim = c_.head_dim,
                        .value_dim = c_.value_dim(),
                        .window_tokens = c_.window,
                        .chunk_tokens = c_.chunk,
                        .ahead_tokens = c_.ahead,
                        .bias_reach = c_.bias_reach,
                        .scale = 1.0f / std::sqrt(static_cast<float>(c_.head_dim)),
                        .softcap = c_.softcap,
                        .is_latent = c_.latent_dim > 0};
    DeviceInfo info = device_.info();
    info.n_processors = n_processors;
    AttendPlan plan;
    plan_attention(info, args, seqs(c_.slices), plan);
    attend_rows(device_, args, plan,
                {upload(plan.tiles), upload(std::vector<std::byte>(plan.partial_bytes + 4)),
                 upload(std::vector<std::byte>(plan.rotated_bytes + 4))});
    std::vector<float> out(n);
    device_.copy_out(out.data(), args.dst, n * sizeof(float));
    return out;
  }

 private:
  static std::byte* aligned(std::vector<std::byte>& memory) {
    return memory.data() + (kAlignment - reinterpret_cast<uintptr_t>(memory.data()) % kAlignment) % kAlignment;
  }

  kernels::KvPages host_pages(size_t seq, int32_t kv_head) {
    const size_t k = static_cast<size_t>(kv_head * c_.n_planes()) * page_bytes_;
    return {aligned(pool_),
            block_table_.data() + seq * static_cast<size_t>(max_blocks_),
            block_bytes_,
            k,
            k + (c_.latent_dim > 0 ? 0 : page_bytes_),
            c_.format,
            0,
            c_.rotated_dims()};
  }
  PagePlaces device_pages() const {
    return {.base = device_pool_,
            .block_table = device_table_,
            .block_bytes = static_cast<int64_t>(block_bytes_),
            .k_offset = 0,
            .v_offset = c_.latent_dim > 0 ? 0 : static_cast<int64_t>(page_bytes_),
            .head_bytes = static_cast<int64_t>(page_bytes_) * c_.n_planes(),
            .max_blocks = max_blocks_,
            .format = static_cast<int32_t>(c_.format),
            .rotated_dims = c_.rotated_dims()};
  }

  static std::vector<SeqSlice> seqs(const std::vector<TestSlice>& slices) {
    std::vector<SeqSlice> seqs;
    int32_t first = 0;
    for (const TestSlice& slice : slices) {
      seqs.push_back({.first_row = first, .n_rows = slice.n_rows, .n_past = slice.n_past});
      first += slice.n_rows;
    }
    return seqs;
  }
  static std::vector<RowPlace> places(const std::vector<TestSlice>& slices) {
    std::vector<RowPlace> places;
    for (size_t seq = 0; seq < slices.size(); ++seq) {
      for (int32_t i = 0; i < slices[seq].n_rows; ++i) {
        places.push_back({static_cast<int32_t>(seq), slices[seq].n_past + i, slices[seq].group_end(i)});
      }
    }
    return places;
  }

  void store(const std::vector<TestSlice>& slices) {
    const int64_t width = int64_t{c_.n_kv_heads} * c_.head_dim;
    std::vector<float> k;
    std::vector<float> v;
    for (size_t seq = 0; seq < slices.size(); ++seq) {
      const TestSlice& slice = slices[seq];
      k.insert(k.end(), k_[seq].begin() + slice.n_past * width, k_[seq].begin() + slice.n_tokens() * width);
      v.insert(v.end(), v_[seq].begin() + slice.n_past * width, v_[seq].begin() + slice.n_tokens() * width);
      for (int32_t head = 0; head < c_.n_kv_heads; ++head) {
        const int64_t at = slice.n_past * width + head * c_.head_dim;
        table_.store_kv({host_pages(seq, head), k_[seq].data() + at, c_.latent_dim > 0 ? nullptr : v_[seq].data() + at,
                         width, c_.head_dim, slice.n_past, slice.n_rows});
      }
    }
    const std::vector<RowPlace> rows = places(slices);
    if (rows.empty()) return;
    store_pages(device_, {.pages = device_pages(),
                          .k = upload(k),
                          .v = c_.latent_dim > 0 ? nullptr : upload(v),
                          .rows = upload(rows),
                          .n_rows = static_cast<int32_t>(rows.size()),
                          .n_kv_heads = c_.n_kv_heads,
                          .head_dim = c_.head_dim});
  }

  template <class T>
  T* upload(const std::vector<T>& values) {
    const size_t n_bytes = values.size() * sizeof(T);
    memory_.push_back(*DeviceMemory::make(device_, n_bytes));
    device_.copy_in(memory_.back().data(), values.data(), n_bytes);
    return memory_.back().template as<T>();
  }

  AttendCase c_;
  Device& device_;
  const kernels::KernelTable& table_ = **kernels::select_table("portable");
  int32_t max_blocks_ = 0;
  int32_t n_rows_ = 0;
  size_t page_bytes_ = 0;
  size_t block_bytes_ = 0;
  std::vector<int32_t> block_table_;
  std::vector<std::byte> pool_;
  std::vector<std::vector<float>> k_;  // of each sequence: [n_tokens, n_kv_heads * head_dim]
  std::vector<std::vector<float>> v_;
  std::vector<float> q_;
  std::vector<float> slopes_;
  std::vector<float> sinks_;
  std::vector<float> biases_;
  std::vector<DeviceMemory> memory_;
  std::byte* device_pool_ = nullptr;
  int32_t* device_table_ = nullptr;
};

// Index of the first number whose bits differ, or -1. Two NaNs are equal.
int64_t first_other_number(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return static_cast<int64_t>(i);
  }
  return -1;
}

class attend_on_device : public ::testing::Test {
 protected:
  void expect_bits(const AttendCase& c) {
    AttendBench bench(c, *device_);
    bench.store();
    ASSERT_EQ(status(), "");
    EXPECT_TRUE(bench.pools_are_equal());
    const auto wanted = bench.expected();
    for (const int32_t n_processors : {1, 1000}) {
      const auto seen = bench.computed(n_processors);
      ASSERT_EQ(status(), "");
      const int64_t i = first_other_number(wanted, seen);
      ASSERT_EQ(i, -1) << "processors: " << n_processors << ", wanted " << wanted[static_cast<size_t>(i)] << ", seen "
                       << seen[static_cast<size_t>(i)];
    }
  }
  std::string status() const { return device_->status() ? "" : device_->status().error().message; }

  platform::ScopedFloatMode mode_;
  std::unique_ptr<Device> device_ = make_test_device();
};

const std::vector<TestSlice> kMixed = {{0, 1}, {30, 1}, {32, 3}, {128, 1}, {5, 40}};

}  // namespace

TEST_F(attend_on_device, heads_of_every_width_and_format_have_the_bits_of_portable) {
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kF32, KvFormat::kQ8, KvFormat::kQ4}) {
    for (const int32_t head_dim : {8, 9, 40, 64, 80, 128, 256}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(format)) + " " + std::to_string(head_dim));
      expect_bits({.format = format, .head_dim = head_dim, .slices = {{0, 1}, {32, 3}, {5, 40}, {129, 1}}});
    }
  }
}

TEST_F(attend_on_device, every_number_of_heads_has_the_bits_of_portable) {
  for (const auto& [n_heads, n_kv_heads] : {std::pair{1, 1}, {3, 3}, {8, 1}, {12, 1}, {5, 1}, {14, 2}, {40, 1}}) {
    SCOPED_TRACE(std::to_string(n_heads) + " " + std::to_string(n_kv_heads));
    expect_bits({.head_dim = 64, .n_heads = n_heads, .n_kv_heads = n_kv_heads, .slices = kMixed});
  }
}

TEST_F(attend_on_device, long_contexts_have_the_bits_of_portable) {
  expect_bits({.n_heads = 4, .n_kv_heads = 1, .slices = {{2048, 1}, {4099, 1}, {2000, 1}}});
  expect_bits({.n_heads = 8, .n_kv_heads = 1, .slices = {{2030, 40}}});
  expect_bits(
      {.format = KvFormat::kQ8, .n_heads = 2, .n_kv_heads = 1, .has_sinks = true, .slices = {{2047, 1}, {4090, 9}}});
  expect_bits({.format = KvFormat::kQ4, .n_heads = 2, .n_kv_heads = 1, .slices = {{2047, 1}, {4090, 9}}});
}

TEST_F(attend_on_device, windows_and_chunks_have_the_bits_of_portable) {
  for (const int32_t window : {1, 50, 300}) {
    expect_bits({.window = window, .slices = {{400, 1}, {270, 40}, {0, 3}}});
    expect_bits({.chunk = window, .slices = {{400, 1}, {270, 40}, {0, 3}}});
  }
  expect_bits({.n_kv_heads = 1, .window = 2100, .slices = {{4170, 1}, {4090, 20}}});
}

TEST_F(attend_on_device, groups_have_the_bits_of_portable) {
  const std::vector<TestSlice> slices = {{0, 70, 0}, {100, 50, 20}, {31, 3, 1}};
  expect_bits({.slices = slices});
  for (const int32_t window : {9, 60}) expect_bits({.window = window, .ahead = window, .slices = slices});
  expect_bits({.n_heads = 2, .n_kv_heads = 2, .bias_reach = 5, .slices = slices});
}

TEST_F(attend_on_device, caps_slopes_biases_and_sinks_have_the_bits_of_portable) {
  expect_bits({.softcap = 1.5f, .slices = kMixed});
  expect_bits({.has_slopes = true, .slices = kMixed});
  expect_bits({.has_sinks = true, .slices = kMixed});
  expect_bits({.softcap = 30.0f, .has_slopes = true, .has_sinks = true, .bias_reach = 20, .slices = kMixed});
}

TEST_F(attend_on_device, latent_values_have_the_bits_of_portable) {
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kF32, KvFormat::kQ8, KvFormat::kQ4}) {
    for (const auto& [head_dim, latent_dim] : {std::pair{48, 20}, {80, 64}, {176, 144}}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(format)) + " " + std::to_string(head_dim));
      expect_bits({.format = format,
                   .head_dim = head_dim,
                   .n_heads = 5,
                   .n_kv_heads = 1,
                   .latent_dim = latent_dim,
                   .slices = {{140, 1}, {30, 9}}});
    }
    expect_bits(
        {.format = format, .head_dim = 576, .n_heads = 16, .n_kv_heads = 1, .latent_dim = 512, .slices = {{129, 2}}});
  }
  expect_bits({.head_dim = 48, .n_heads = 2, .n_kv_heads = 1, .latent_dim = 32, .slices = {{2049, 1}}});
}

TEST_F(attend_on_device, numbers_that_no_model_has_have_the_bits_of_portable) {
  for (const Adverse adverse : {Adverse::kNumbers, Adverse::kAny}) {
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kF32, KvFormat::kQ8, KvFormat::kQ4}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(format)));
      AttendCase c{.format = format, .adverse = adverse, .slices = {{0, 40}, {300, 1}, {100, 30}}};
      expect_bits(c);
      c = {.format = format, .window = 40, .softcap = 20.0f, .has_sinks = true, .adverse = adverse};
      c.slices = {{300, 1}, {20, 30}};
      expect_bits(c);
      c = {.format = format, .head_dim = 80, .n_kv_heads = 1, .latent_dim = 64, .adverse = adverse};
      c.slices = {{300, 1}, {20, 30}};
      expect_bits(c);
    }
  }
}

TEST(attend_plan, rows_of_few_queries_and_of_many_are_taken_apart) {
  DeviceInfo device{.name = {}, .n_processors = 10, .max_shared_bytes = 227 << 10};
  AttendRowsArgs args{.n_rows = 203, .n_heads = 32, .n_kv_heads = 8, .head_dim = 128, .value_dim = 128};
  const SeqSlice seqs[] = {{.first_row = 0, .n_rows = 1, .n_past = 5000},
                           {.first_row = 1, .n_rows = 200, .n_past = 0},
                           {.first_row = 201, .n_rows = 2, .n_past = 10}};
  AttendPlan plan;
  plan_attention(device, args, seqs, plan);
  EXPECT_EQ(plan.few.n_tiles, 2);
  EXPECT_EQ(plan.few.n_queries, 8);
  EXPECT_EQ(plan.few.group_tiles, 1);  // so that two blocks share a processor
  EXPECT_LE(plan.few.shared_bytes, (227 << 10) / 2 - 1024);
  EXPECT_EQ(plan.few.n_splits, 3);
  EXPECT_FALSE(plan.few.shares_splits);  // 2 tiles of 8 heads keep all processors busy
  EXPECT_EQ(plan.many.n_tiles, 13);
  EXPECT_EQ(plan.many.n_queries, 64);
  EXPECT_EQ(plan.many.n_splits, 1);
  EXPECT_EQ(plan.tiles[1], (RowTile{201, 2}));
  EXPECT_EQ(plan.tiles[2], (RowTile{1, 16}));
}

TEST(attend_plan, few_blocks_are_divided_among_the_processors) {
  const DeviceInfo device{.name = {}, .n_processors = 132, .max_shared_bytes = 227 << 10};
  const AttendRowsArgs args{.n_rows = 101, .n_heads = 32, .n_kv_heads = 8, .head_dim = 128, .value_dim = 128};
  const SeqSlice seqs[] = {{.first_row = 0, .n_rows = 1, .n_past = 5000}, {.first_row = 1, .n_rows = 100}};
  AttendPlan plan;
  plan_attention(device, args, seqs, plan);
  EXPECT_EQ(plan.few.block_heads, 2);  // 8 heads x 3 splits x 2 parts
  EXPECT_EQ(plan.few.n_parts, 2);
  EXPECT_EQ(plan.few.group_tiles, 2);
  EXPECT_TRUE(plan.few.shares_splits);
  EXPECT_EQ(plan.few.n_splits, 3);
  EXPECT_EQ(plan.many.tile_rows, 8);  // 13 tiles x 8 heads
  EXPECT_FALSE(plan.many.shares_splits);
  EXPECT_GE(plan.partial_bytes, size_t{32 * 3 * 130 * 4});
}

TEST(attend_plan, every_shape_fits_a_block_of_little_memory) {
  const DeviceInfo device{.name = {}, .n_processors = 100, .max_shared_bytes = 99 << 10};
  const SeqSlice seqs[] = {{.first_row = 0, .n_rows = 1, .n_past = 5000}, {.first_row = 1, .n_rows = 100}};
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kF32}) {
    for (const auto& [head_dim, value_dim] : {std::pair{8, 8}, {128, 128}, {256, 256}, {512, 512}, {576, 512}}) {
      AttendRowsArgs args{.n_rows = 101, .n_heads = 16, .n_kv_heads = 1, .head_dim = head_dim, .value_dim = value_dim};
      args.pages.format = static_cast<int32_t>(format);
      args.is_latent = value_dim < head_dim;
      AttendPlan plan;
      plan_attention(device, args, seqs, plan);
      EXPECT_LE(plan.few.shared_bytes, device.max_shared_bytes) << head_dim;
      EXPECT_LE(plan.many.shared_bytes, device.max_shared_bytes) << head_dim;
    }
  }
}

}  // namespace candor::backend::cuda
