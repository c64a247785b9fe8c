#include "backend/cuda/product_kernels.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "backend/cuda/kernels/kernel_list.h"
#include "backend/cuda/kernels/product_launch.h"
#include "base/checked.h"
#include "kernels/packed_format.h"
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

// product_q4_k for Q4_K.
constexpr bool is_product_of(const NamedKernel& kernel, std::string_view format) {
  constexpr std::string_view kPrefix = "product_";
  if (!kernel.is_product || !kernel.name.starts_with(kPrefix)) return false;
  return std::ranges::equal(kernel.name.substr(kPrefix.size()), format, {}, {}, lower);
}

// nullptr: there is none.
constexpr const char* find_product(std::string_view format) {
  for (const NamedKernel& kernel : kKernels) {
    if (is_product_of(kernel, format)) return kernel.name.data();
  }
  return nullptr;
}

template <class... Blocks>
constexpr bool all_have_products(BlockList<Blocks...>) {
  return ((find_product(Blocks::kName) != nullptr) && ...);
}
static_assert(all_have_products(WeightBlocks{}), "a weight format has no kernel in kernels/kernel_list.h");

// How a format's kernel divides a product.
struct ProductPlan {
  Kernel<ProductArgs> kernel{};
  int32_t block_rows = kMostFewRows;
  size_t shared_bytes = 0;
};

template <class Block>
constexpr ProductPlan make_plan() {
  ProductPlan plan{.kernel = {find_product(Block::kName)}};
  if constexpr (Block::kType == DType::kF32 || Block::kType == DType::kF16) {
    plan.block_rows = kChainRows;
    plan.shared_bytes = kChainSharedBytes;
  } else if constexpr (Block::kType == DType::kBF16 || quant::IsFloatBlock<Block>) {
    plan.shared_bytes = kSliceSharedBytes;
  } else if constexpr (quant::ScaledRow<Block>) {
    plan.shared_bytes = kScaledSharedBytes;
  } else if constexpr (quant::IsGrid<Block>) {
    plan.shared_bytes = few_shared_bytes(1);
  } else {
    plan.shared_bytes = few_shared_bytes(terms_of_turn(Block::kPacked));
  }
  return plan;
}

ProductPlan plan_of(DType dtype) {
  ProductPlan plan;
  with_block(dtype, [&]<class Block>(BlockType<Block>) { plan = make_plan<Block>(); });
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

void run_product(Device& device, DType dtype, const ProductArgs& args, int32_t n_groups) {
  if (args.most_rows <= 0 || args.n_out <= 0 || n_groups <= 0) return;
  const ProductPlan plan = plan_of(dtype);
  device.run(plan.kernel,
             {.x = static_cast<uint32_t>(ceil_div(args.n_out, kernels::kPanelRows)),
              .y = static_cast<uint32_t>(ceil_div(args.most_rows, plan.block_rows)),
              .z = static_cast<uint32_t>(n_groups),
              .n_threads = kFewThreads,
              .shared_bytes = static_cast<uint32_t>(plan.shared_bytes)},
             args);
}

void encode_rows(Device& device, Encoding encoding, const EncodeArgs& args) {
  if (args.n_rows <= 0) return;
  const auto n_rows = static_cast<uint32_t>(args.n_rows);
  if (encoding == Encoding::kQ8Row) {
    constexpr uint32_t kSharedBytes = 2 * sizeof(uint32_t) * kEncodeRowThreads / 32;
    device.run(kernel::encode_q8row, {.x = n_rows, .n_threads = kEncodeRowThreads, .shared_bytes = kSharedBytes}, args);
    return;
  }
  const EncodePlan plan = plan_of(encoding);
  device.run(plan.kernel,
             {.x = n_rows, .y = static_cast<uint32_t>(ceil_div(args.n, plan.of_block)), .n_threads = kEncodeThreads},
             args);
}

}  // namespace candor::backend::cuda
