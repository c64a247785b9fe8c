#pragma once
// The one list of the types that weights may have. A format is a header in tensor/quant and a row here: the table of
// types and their names, decoding and encoding, the check of a file's scales, packing and the dispatch of products are
// all made from the list. What a block lacks is named by the compiler (is_complete below).

#include <concepts>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/quant/block_format.h"
#include "tensor/quant/few_bits.h"
#include "tensor/quant/fp4.h"
#include "tensor/quant/fp8.h"
#include "tensor/quant/grid.h"
#include "tensor/quant/iq1.h"
#include "tensor/quant/iq2.h"
#include "tensor/quant/iq3.h"
#include "tensor/quant/iq4.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/q2_k.h"
#include "tensor/quant/q3_k.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_1.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q4_k_fast.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q5_1.h"
#include "tensor/quant/q5_k.h"
#include "tensor/quant/q6_k.h"
#include "tensor/quant/q8_0.h"
#include "tensor/quant/scalar_formats.h"
#include "tensor/quant/ternary.h"
#include "tensor/quant/unit_codes.h"
#include "tensor/quant/w8a8.h"

namespace candor {

template <class... Blocks>
struct BlockList {};

// In the order in which messages name them.
// clang-format off
using WeightBlocks = BlockList<
    quant::BlockF32,
    quant::BlockF16,
    quant::BlockBF16,
    quant::BlockQ4_0,
    quant::BlockQ4_1,
    quant::BlockQ5_0,
    quant::BlockQ5_1,
    quant::BlockQ8_0,
    quant::BlockQ2_K,
    quant::BlockQ3_K,
    quant::BlockQ4_K,
    quant::BlockQ5_K,
    quant::BlockQ6_K,
    quant::BlockIQ1_S,
    quant::BlockIQ1_M,
    quant::BlockIQ2_XXS,
    quant::BlockIQ2_XS,
    quant::BlockIQ2_S,
    quant::BlockIQ3_XXS,
    quant::BlockIQ3_S,
    quant::BlockIQ4_NL,
    quant::BlockIQ4_XS,
    quant::BlockTQ1_0,
    quant::BlockTQ2_0,
    quant::BlockQ1_0,
    quant::BlockQ2_0,
    quant::BlockMXFP4,
    quant::BlockW8A8,
    quant::BlockFP8,
    quant::BlockFP4,
    quant::BlockQ4_KFast>;
// clang-format on

namespace quant {

template <class Block>
concept NamedBlock = requires {
  { Block::kType } -> std::convertible_to<DType>;
  { Block::kName } -> std::convertible_to<std::string_view>;
  { Block::kElements } -> std::convertible_to<int>;
  { Block::kFamily } -> std::convertible_to<KernelFamily>;
  { Block::scale_fields() } -> std::same_as<ScaleFields>;
};

template <class Block>
concept CodedBlock = requires(const float* values, float* decoded, Block& block, const Block& encoded) {
  encode_block(values, block);
  decode_block(encoded, decoded);
};

// The values of a float may be NaN or infinite, the scales of a block: a type that could be neither is left unchecked.
template <class Block>
concept CheckedFloat = requires {
  { Block::kExponentBits } -> std::convertible_to<uint32_t>;
};
template <class Block>
concept CheckedScales = Block::kPacked.scale_bytes == 1 || (Block::scale_fields().scale >= 0 &&
                                                            Block::kPacked.has_min <= (Block::scale_fields().min >= 0));

template <class Block>
concept PackedBlock = requires(const Block& block, UnitCodes& codes) {
  { Block::kPacked } -> std::convertible_to<PackedFormat>;
  parse_block(block, codes, 0);
}
&&Block::kPacked.dtype == Block::kType;

// The family's kernels are those that the packed form needs.
template <class Block>
concept InItsFamily =
    Block::kFamily == Block::kPacked.family() && Block::kPacked.is_super == (Block::kElements == kSuperBlock) &&
    Block::kPacked.is_super == (Block::kPacked.sub_scales != SubScales::kNone);

// A row has one scale for all its blocks.
template <class Block>
concept ScaledRow = requires(const float* values, float* decoded, std::byte* to, const std::byte* row) {
  { Block::kRowHeaderBytes } -> std::convertible_to<int32_t>;
  Block::encode_row(values, int64_t{}, to);
  Block::decode_row(row, int64_t{}, decoded);
};

template <class Block>
constexpr int32_t row_header_bytes() {
  if constexpr (ScaledRow<Block>) return Block::kRowHeaderBytes;
  return 0;
}

template <class Block>
concept IsFloat = Block::kFamily == KernelFamily::kFloats;

template <class Block>
concept IsFloatBlock = Block::kFamily == KernelFamily::kFloatBlocks;

template <class Block>
concept IsGrid = Block::kFamily == KernelFamily::kGrids;

// Codes may be NaN too.
template <class Block>
concept CheckedBlock = requires(const Block& block) {
  { is_sound(block) } -> std::same_as<bool>;
};

// Names the block and what it lacks.
template <class Block>
constexpr bool is_complete() {
  static_assert(NamedBlock<Block>, "a block needs kType, kName, kElements, kFamily and scale_fields()");
  static_assert(CodedBlock<Block> != ScaledRow<Block>,
                "a block needs encode_block() and decode_block(), or kRowHeaderBytes, encode_row() and decode_row()");
  if constexpr (ScaledRow<Block>) {
    static_assert(Block::kFamily == KernelFamily::kScaledRows);
  } else if constexpr (IsFloat<Block>) {
    static_assert(CheckedFloat<Block>, "a float needs kExponentBits: its values are checked");
  } else if constexpr (IsFloatBlock<Block>) {
    static_assert(CheckedBlock<Block>, "a block of floats needs is_sound(): its codes and scale are checked");
  } else if constexpr (IsGrid<Block>) {
    static_assert(GridBlock<Block> && CheckedBlock<Block>,
                  "a block of a grid needs kGrid, parse_grid() and build_grid()");
    static_assert(Block::kGrid.dtype == Block::kType && Block::kElements == kSuperBlock);
  } else {
    static_assert(PackedBlock<Block>, "a block needs kPacked of its own type and parse_block()");
    static_assert(CheckedScales<Block>, "scale_fields() must name each f16 of the block: they are checked");
    static_assert(InItsFamily<Block>, "kFamily, kElements and kPacked contradict one another");
  }
  return true;
}

}  // namespace quant

template <class... Blocks>
constexpr bool all_are_complete(BlockList<Blocks...>) {
  return (quant::is_complete<Blocks>() && ...);
}
static_assert(all_are_complete(WeightBlocks{}));

// A block struct as an argument.
template <class Block>
struct BlockType {};

// Calls visit(BlockType<Block>{}) for the block struct of a dtype; returns whether it is a weight's.
template <class Visit, class... Blocks>
constexpr bool visit_block(DType dtype, const Visit& visit, BlockList<Blocks...>) {
  return ((dtype == Blocks::kType && (visit(BlockType<Blocks>{}), true)) || ...);
}

// REQUIRES: a weight's dtype.
template <class Visit>
void with_block(DType dtype, const Visit& visit) {
  const bool is_weight = visit_block(dtype, visit, WeightBlocks{});
  CANDOR_CHECK(is_weight);
}

}  // namespace candor
