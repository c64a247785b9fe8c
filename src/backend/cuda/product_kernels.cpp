#include "backend/cuda/product_kernels.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "backend/cuda/kernels/kernel_list.h"
#include "backend/cuda/kernels/product_launch.h"
#include "base/checked.h"
#include "kernels/packed_format.h"
#include "kernels/packed_grid.h"
#include "tensor/weight_formats.h"

namespace candor::backend::cuda {

using kernels::Encoding;

namespace {

struct NamedKernel {
  std::string_view name;
  bool is_product;
};
#define CANDOR_CUDA_NAMED(name, Args) NamedKernel{#name, std::is_same_v<Args, ProductArgs>},
constexpr NamedKernel kKernels[] = {CANDOR_CUDA_KERNELS(CANDOR_CUDA_NAMED)};
#undef CANDOR_CUDA_NAMED

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Of few rows product_q4_k for Q4_K, of many product_q4_k_many.
enum class Rows : uint8_t { kFew, kMany };
constexpr bool is_product_of(const NamedKernel& kernel, std::string_view format, Rows rows) {
  constexpr std::string_view kPrefix = "product_";
  const std::string_view suffix = rows == Rows::kFew ? "" : "_many";
  std::string_view name = kernel.name;
  if (!kernel.is_product || name.size() != kPrefix.size() + format.size() + suffix.size()) return false;
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return false;
  return std::ranges::equal(name.substr(kPrefix.size(), format.size()), format, {}, {}, lower);
}

// nullptr: there is none.
constexpr const char* find_product(std::string_view format, Rows rows) {
  for (const NamedKernel& kernel : kKernels) {
    if (is_product_of(kernel, format, rows)) return kernel.name.data();
  }
  return nullptr;
}

template <class... Blocks>
constexpr bool all_have_products(Rows rows, BlockList<Blocks...>) {
  return ((find_product(Blocks::kName, rows) != nullptr) && ...);
}
static_assert(all_have_products(Rows::kFew, WeightBlocks{}) && all_have_products(Rows::kMany, WeightBlocks{}),
              "a weight format has no kernel in kernels/kernel_list.h");

// How a kernel divides a product into blocks of threads.
struct ProductPlan {
  Kernel<ProductArgs> kernel{};
  uint32_t n_threads = 0;
  int32_t block_rows = 0;
  int32_t block_panels = 0;
  size_t shared_bytes = 0;
};

template <class Block>
constexpr bool kHasOneChain = Block::kType == DType::kF32 || Block::kType == DType::kF16;
template <class Block>
constexpr bool kHasPairs = Block::kType == DType::kBF16 || quant::IsFloatBlock<Block>;

template <class Block>
constexpr size_t few_bytes() {
  if constexpr (kHasOneChain<Block>) {
    return kChainSharedBytes;
  } else if constexpr (kHasPairs<Block>) {
    return kSliceSharedBytes;
  } else if constexpr (quant::ScaledRow<Block>) {
    return kScaledSharedBytes;
  } else if constexpr (quant::IsGrid<Block>) {
    return few_shared_bytes(kUnitTermsBytes);
  } else {
    return few_shared_bytes(Block::kPacked.is_super ? kUnitTermsBytes : block_terms_bytes(Block::kPacked.has_min));
  }
}

template <class Block>
constexpr size_t many_bytes() {
  using kernels::kUnit;
  if constexpr (kHasOneChain<Block> || kHasPairs<Block>) {
    return kFloatStages * float_stage_bytes(quant::IsFloatBlock<Block>, slice_bytes(Block::kType));
  } else if constexpr (quant::ScaledRow<Block>) {
    return ManyScaledLayout::kSharedBytes;
  } else if constexpr (quant::IsGrid<Block>) {
    return ManyUnitsLayout<false, kernels::grid_unit_bytes(Block::kGrid)>::kSharedBytes;
  } else if constexpr (Block::kPacked.is_super) {
    return ManyUnitsLayout<Block::kPacked.has_min, kernels::unit_bytes(Block::kPacked, kUnit)>::kSharedBytes;
  } else {
    return ManyBlocksLayout<Block::kPacked.has_min, kernels::unit_bytes(Block::kPacked, kUnit)>::kSharedBytes;
  }
}

template <class Block>
constexpr ProductPlan make_plan(Rows rows) {
  if (rows == Rows::kFew) {
    return {.kernel = {find_product(Block::kName, rows)},
            .n_threads = kFewThreads,
            .block_rows = kHasOneChain<Block> ? kChainRows : kMostFewRows,
            .block_panels = 1,
            .shared_bytes = few_bytes<Block>()};
  }
  constexpr bool kIsFloat = kHasOneChain<Block> || kHasPairs<Block>;
  return {.kernel = {find_product(Block::kName, rows)},
          .n_threads = kManyThreads,
          .block_rows = kIsFloat ? float_rows_of_block(quant::IsFloatBlock<Block>) : kManyRows,
          .block_panels = kManyWarps,
          .shared_bytes = many_bytes<Block>()};
}

ProductPlan plan_of(DType dtype, Rows rows) {
  ProductPlan plan;
  with_block(dtype, [&]<class Block>(BlockType<Block>) { plan = make_plan<Block>(rows); });
  return plan;
}

constexpr uint32_t kEncodeThreads = 256;
constexpr uint32_t kEncodeRowThreads = 512;
constexpr int64_t kCodesOfThread = 8;

struct EncodePlan {
  Kernel<EncodeArgs> kernel{};
  int64_t of_block = 0;  // elements
};

EncodePlan plan_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::kF32:
      return {kernel::encode_f32, kEncodeThreads};
    case Encoding::kBf16:
      return {kernel::encode_bf16, kEncodeThreads};
    case Encoding::kQ8x256:
      return {kernel::encode_q8x256, kCodesOfThread * kEncodeThreads};
    case Encoding::kQ8x32:
      return {kernel::encode_q8x32, kCodesOfThread * kEncodeThreads};
    case Encoding::kQ8Row:
      break;
  }
  return {};
}

}  // namespace

void run_product(Launcher& launcher, DType dtype, const ProductArgs& args, int32_t n_runs) {
  if (args.most_rows <= 0 || args.n_out <= 0 || n_runs <= 0) return;
  const Rows rows = args.most_rows > kMostFewRows ? Rows::kMany : Rows::kFew;
  const ProductPlan plan = plan_of(dtype, rows);
  const auto row_blocks = static_cast<uint32_t>(ceil_div(args.most_rows, plan.block_rows));
  const auto panel_blocks = static_cast<uint32_t>(ceil_div(args.n_out, kernels::kPanelRows * plan.block_panels));
  launcher.run(plan.kernel,
               {.x = rows == Rows::kMany ? row_blocks : panel_blocks,
                .y = rows == Rows::kMany ? panel_blocks : row_blocks,
                .z = static_cast<uint32_t>(n_runs),
                .n_threads = plan.n_threads,
                .shared_bytes = static_cast<uint32_t>(plan.shared_bytes)},
               args);
}

void encode_rows(Launcher& launcher, Encoding encoding, const EncodeArgs& args) {
  if (args.n_rows <= 0) return;
  const auto n_rows = static_cast<uint32_t>(args.n_rows);
  if (encoding == Encoding::kQ8Row) {
    constexpr uint32_t kSharedBytes = 2 * sizeof(uint32_t) * kEncodeRowThreads / 32;
    launcher.run(kernel::encode_q8row, {.x = n_rows, .n_threads = kEncodeRowThreads, .shared_bytes = kSharedBytes},
                 args);
    return;
  }
  const EncodePlan plan = plan_of(encoding);
  launcher.run(plan.kernel,
               {.x = n_rows, .y = static_cast<uint32_t>(ceil_div(args.n, plan.of_block)), .n_threads = kEncodeThreads},
               args);
}

}  // namespace candor::backend::cuda
