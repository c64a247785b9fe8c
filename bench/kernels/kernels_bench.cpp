// Speed of every weight format at M = 1, 8, 16 and 512 with one thread, and of attention, as shares of the limits that
// this machine showed in the same run. CANDOR_ISA chooses the instruction set. Standard Google Benchmark options:
//   candor_bench_kernels --benchmark_filter=Q4_K --benchmark_repetitions=5

#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/limits.h"
#include "platform/float_mode.h"
#include "platform/huge_buffer.h"
#include "tensor/encode.h"
#include "tensor/weight_formats.h"

namespace candor::kernels {

namespace {

constexpr int64_t kColumns = 2048;
constexpr int64_t kManyRows = 512;
constexpr size_t kStreamBytes = size_t{160} << 20;  // past every cache, for small M

template <class... Blocks>
constexpr std::array<DType, sizeof...(Blocks)> types_of(BlockList<Blocks...>) {
  return {Blocks::kType...};
}
constexpr auto kFormats = types_of(WeightBlocks{});

struct Machine {
  const KernelTable* table = nullptr;
  MachineLimits limits;
};

// Huge pages, as the engine's own memory.
class Bytes {
 public:
  explicit Bytes(size_t n_bytes) : buffer_(*platform::HugeBuffer::allocate(n_bytes, "a benchmark")) {
    std::memset(buffer_.data(), 0, buffer_.size());
  }
  std::byte* get() const { return const_cast<std::byte*>(buffer_.data()); }

 private:
  platform::HugeBuffer buffer_;
};

std::vector<float> random_values(int64_t n) {
  std::minstd_rand rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(rng);
  return values;
}

// One random panel, packed, and copied to all panels.
Bytes make_weights(const WeightShape& shape) {
  const std::vector<float> values = random_values(kPanelRows * shape.n_in);
  std::vector<std::byte> blocks(kPanelRows * row_bytes(dtype_info(shape.dtype), shape.n_in));
  encode_rows(shape.dtype, values.data(), kPanelRows, shape.n_in, blocks.data());
  Bytes packed(packed_bytes(shape));
  pack_panels({shape.dtype, kPanelRows, shape.n_in}, blocks.data(), 0, 1, packed.get());
  for (int64_t p = 1; p < n_panels(shape); ++p) {
    std::memcpy(packed.get() + static_cast<size_t>(p) * panel_bytes(shape), packed.get(), panel_bytes(shape));
  }
  return packed;
}

Bytes make_activations(const Machine& machine, const WeightShape& shape, int64_t n_rows) {
  const Encoding encoding = encoding_of(shape.dtype);
  const size_t stride = encoded_row_bytes(encoding, shape.n_in);
  const std::vector<float> values = random_values(n_rows * shape.n_in);
  Bytes encoded(stride * static_cast<size_t>(n_rows));
  for (int64_t r = 0; r < n_rows; ++r) {
    machine.table->encode(encoding, values.data() + r * shape.n_in, shape.n_in,
                          encoded.get() + static_cast<size_t>(r) * stride);
  }
  return encoded;
}

void report(benchmark::State& state, const Machine& machine, double bytes, double ops, Arithmetic arithmetic) {
  const double n = static_cast<double>(state.iterations());
  const double peak = machine.limits.ops(arithmetic);
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(n * bytes / 1e9, Counter::kIsRate);
  state.counters["GOP/s"] = Counter(n * ops / 1e9, Counter::kIsRate);
  state.counters["of_dram_%"] = Counter(n * bytes * 100 / machine.limits.dram_read_bytes, Counter::kIsRate);
  state.counters["of_peak_%"] = Counter(n * ops * 100 / peak, Counter::kIsRate);
}

void bench_matmul(benchmark::State& state, const Machine& machine, DType dtype, int64_t n_rows) {
  const platform::ScopedFloatMode mode;
  WeightShape shape{dtype, 8192, kColumns};
  if (n_rows < kManyRows) {
    shape.n_out = static_cast<int64_t>(kStreamBytes / panel_bytes(shape)) * kPanelRows;
  }
  const Bytes weights = make_weights(shape);
  const Bytes activations = make_activations(machine, shape, n_rows);
  const Bytes scratch(matmul_scratch_bytes(kColumns));
  std::vector<float> dst(static_cast<size_t>(n_rows * shape.n_out));
  const MatmulArgs args{.shape = shape,
                        .weights = weights.get(),
                        .activations = activations.get(),
                        .n_rows = static_cast<int32_t>(n_rows),
                        .dst = dst.data(),
                        .dst_stride = shape.n_out,
                        .panel_begin = 0,
                        .panel_end = n_panels(shape),
                        .scratch = scratch.get()};
  for (auto _ : state) machine.table->matmul(args);
  const double macs = static_cast<double>(n_rows) * static_cast<double>(shape.n_out) * kColumns;
  report(state, machine, static_cast<double>(packed_bytes(shape)), 2 * macs, arithmetic_of(dtype));
}

// Of pages in this format. q4's heads are rotated.
KvPages pages_of(KvFormat format, int32_t head_dim) {
  KvPages pages;
  pages.format = format;
  if (format == KvFormat::kQ4) pages.rotated_dims = rotated_dims(head_dim, 0);
  return pages;
}

// n_rows queries of 4 heads at the end of a context, one K/V head of 64.
void bench_attend(benchmark::State& state, const Machine& machine, KvFormat format, int32_t n_rows, int32_t context) {
  const platform::ScopedFloatMode mode;
  constexpr int32_t kDim = 64;
  constexpr int32_t kHeads = 4;
  const size_t page = kv_page_bytes(kDim, format);
  const int32_t n_blocks = (context + kPageTokens - 1) / kPageTokens;
  const Bytes memory(static_cast<size_t>(n_blocks) * 2 * page);
  std::vector<int32_t> blocks(static_cast<size_t>(n_blocks));
  for (int32_t i = 0; i < n_blocks; ++i) blocks[static_cast<size_t>(i)] = i;
  KvPages pages = pages_of(format, kDim);
  pages.base = memory.get();
  pages.block_table = blocks.data();
  pages.block_bytes = 2 * page;
  pages.v_offset = page;
  const std::vector<float> values = random_values(int64_t{context} * kDim);
  machine.table->store_kv({pages, values.data(), values.data(), kDim, kDim, 0, context});
  const std::vector<float> q = random_values(int64_t{n_rows} * kHeads * kDim);
  std::vector<float> dst(q.size());
  const Bytes scratch(attend_scratch_bytes(kDim));
  const AttendArgs args{pages,  q.data(), kHeads * kDim,    dst.data(), kHeads * kDim, n_rows,
                        kHeads, kDim,     context - n_rows, 0,          0.125f};
  for (auto _ : state) machine.table->attend(args, scratch.get());
  const double keys = static_cast<double>(n_rows) * (context - 0.5 * n_rows);
  report(state, machine, static_cast<double>(2 * page) * n_blocks, keys * kHeads * kDim * 4, Arithmetic::kBf16);
}

// What decoding one token reads: 128 pairs of layer and head in turn, whose pages of a block stand side by side.
void bench_decode_attend(benchmark::State& state, const Machine& machine, KvFormat format, int32_t n_heads) {
  const platform::ScopedFloatMode mode;
  constexpr int32_t kContext = 8192;
  constexpr int32_t kDim = 64;
  constexpr size_t kPairs = 128;
  const size_t page = kv_page_bytes(kDim, format);
  const int32_t n_blocks = kContext / kPageTokens;
  KvPages pages = pages_of(format, kDim);
  pages.block_bytes = kPairs * 2 * page;
  auto memory = *platform::HugeBuffer::allocate(static_cast<size_t>(n_blocks) * pages.block_bytes, "pages");
  std::memset(memory.data(), 0, memory.size());
  pages.base = memory.data();
  std::vector<int32_t> blocks(static_cast<size_t>(n_blocks));
  for (int32_t i = 0; i < n_blocks; ++i) blocks[static_cast<size_t>(i)] = i;
  pages.block_table = blocks.data();
  const std::vector<float> q = random_values(int64_t{n_heads} * kDim);
  std::vector<float> dst(q.size());
  const Bytes scratch(attend_scratch_bytes(kDim));
  size_t pair = 0;
  for (auto _ : state) {
    pages.k_offset = pair * 2 * page;
    pages.v_offset = pages.k_offset + page;
    machine.table->attend(
        {pages, q.data(), n_heads * kDim, dst.data(), n_heads * kDim, 1, n_heads, kDim, kContext - 1, 0, 0.125f},
        scratch.get());
    pair = (pair + 1) % kPairs;
  }
  report(state, machine, 2.0 * static_cast<double>(page) * n_blocks, 4.0 * n_heads * kDim * kContext,
         Arithmetic::kBf16);
}

void add_all(const Machine& machine) {
  for (const DType dtype : kFormats) {
    for (const int64_t n_rows : {int64_t{1}, int64_t{8}, int64_t{16}, kManyRows}) {
      const std::string name = std::string(dtype_info(dtype).name) + "/M" + std::to_string(n_rows);
      benchmark::RegisterBenchmark(name.c_str(), [machine, dtype, n_rows](benchmark::State& state) {
        bench_matmul(state, machine, dtype, n_rows);
      });
    }
  }
  for (const auto& [n_rows, context] : {std::pair{1, 4096}, std::pair{1, 32768}, std::pair{512, 512}}) {
    const std::string name = "attend/" + std::to_string(n_rows) + "_rows/context_" + std::to_string(context);
    benchmark::RegisterBenchmark(name.c_str(), [machine, n_rows = n_rows, context = context](benchmark::State& state) {
      bench_attend(state, machine, KvFormat::kBf16, n_rows, context);
    });
  }
  for (const auto& [name, format] :
       {std::pair{"bf16", KvFormat::kBf16}, {"q8_0", KvFormat::kQ8}, {"q4", KvFormat::kQ4}}) {
    for (const int32_t n_heads : {4, 1}) {
      const std::string decode = std::string("attend/decode_8192_") + name + "/heads_" + std::to_string(n_heads);
      benchmark::RegisterBenchmark(decode.c_str(), [machine, format = format, n_heads](benchmark::State& state) {
        bench_decode_attend(state, machine, format, n_heads);
      });
    }
    const std::string prompt = std::string("attend/256_rows/context_8192_") + name;
    benchmark::RegisterBenchmark(prompt.c_str(), [machine, format = format](benchmark::State& state) {
      bench_attend(state, machine, format, 256, 8192);
    });
  }
}

}  // namespace

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto table = select_table_from_environment();
  if (!table) {
    std::fprintf(stderr, "%s\n", table.error().message.c_str());
    return 2;
  }
  const Machine machine{*table, measure_limits(**table)};
  const MachineLimits& limits = machine.limits;
  std::printf("%s: DRAM read %.1f GB/s, L2 read %.1f GB/s, int8 %.0f GOP/s, bf16 %.0f, f32 %.0f GFLOP/s (one thread)\n",
              (*table)->name.data(), limits.dram_read_bytes / 1e9, limits.l2_read_bytes / 1e9, limits.int8_ops / 1e9,
              limits.bf16_flops / 1e9, limits.f32_flops / 1e9);
  add_all(machine);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace candor::kernels

int main(int argc, char** argv) {
  return candor::kernels::run(argc, argv);
}
