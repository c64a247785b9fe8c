#pragma once
// What a quantised format says about itself, as constants of its block struct (the bytes of 32 or 256 consecutive
// weights). Tables, switches and checks over formats are made from these and from the list in tensor/weight_formats.h;
// none of them names a format a second time.
//
// A block struct has: kType, kName (as users write it), kElements, kFamily, kPacked (but for floats) and
// scale_fields(); beside it are decode_block(), encode_block() and, but for floats, parse_block(). Where rows have
// one scale before its blocks, the struct has kRowHeaderBytes, decode_row() and encode_row() instead, and no kPacked.
// Blocks of floats have is_sound() instead of kPacked and parse_block(), blocks of a grid kGrid (grid.h).

#include <cstdint>

#include "tensor/dtype.h"

namespace candor::quant {

inline constexpr int kSuperBlock = 256;  // elements of a K-quant block

// Formats that the same kernels multiply. Symmetric ones have scales, affine ones minima too; a super-block has integer
// sub-scales under one or two f16 numbers; a scaled row has one scale in all; a block of floats has an f32 scale; codes
// of a grid name vectors (grid.h).
enum class KernelFamily : uint8_t {
  kFloats,
  kBlocks,
  kAffineSuperBlocks,
  kSymmetricSuperBlocks,
  kScaledRows,
  kFloatBlocks,
  kGrids,
};

// Where a block keeps its f16 scales, as byte offsets; what a damaged file can fill with NaN or infinity.
struct ScaleFields {
  int scale = -1;  // -1: it has none
  int min = -1;
};

// What the integer of a code means.
enum class CodeValues : uint8_t {
  kInteger,  // itself, less an offset
  kIq4,      // an entry of kIq4Values
  kFp4,      // an entry of kFp4TwiceValues
  kSigns,    // -1 for 0, 1 for 1
  kRebased,  // ((a * code) >> 4) + b with the group's a and b
};

// How a row's sub-scales (and minima) become bytes in a packed unit; kernels/packed_format.h has the bits.
enum class SubScales : uint8_t {
  kNone,         // no super-block
  kOnes,         // none either: d holds for all 256
  kBytes,        // int8 each
  kNibbles,      // scale and minimum in a byte
  kSixBitsOf8,   // 8 scales of 6 bits, less 32
  kSixBitsOf16,  // 16 of them
  kSixBitPairs,  // 8 scales and 8 minima of 6 bits
  kMultipliers,  // 8 multipliers, 8 offsets
};

// How 256 elements of an output (32-blocks: a multiple of 32) lie in a packed panel.
struct PackedFormat {
  DType dtype = DType::kF32;
  bool is_super = false;  // one d for 256 k, with integer sub-scales
  int low_bits = 0;       // of a code, in the first bit plane
  int high_bits = 0;      // in the second
  bool has_min = false;
  int offset = 0;  // weight = code - offset, before any table
  CodeValues values = CodeValues::kInteger;
  SubScales sub_scales = SubScales::kNone;
  int n_groups = 0;     // sub-scales per 256
  int scale_bytes = 2;  // a row: all sub-scales of a unit, or one 32-block's d (1: an exponent)
  int d_bytes = 2;      // of a super-block

  constexpr KernelFamily family() const {
    if (!is_super) return KernelFamily::kBlocks;
    return has_min ? KernelFamily::kAffineSuperBlocks : KernelFamily::kSymmetricSuperBlocks;
  }
};

}  // namespace candor::quant
