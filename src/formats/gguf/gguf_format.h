#pragma once
// The GGUF container, versions 2 and 3, little-endian (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
//   "GGUF", u32 version, u64 tensor count, u64 metadata count,
//   metadata: { string key, u32 type, value }...
//   directory: { string name, u32 n_dims, u64 dims[n_dims] (innermost first), u32 tensor type, u64 offset }...
//   zeros to the alignment, then data; offsets count from there and are multiples of the alignment.
// A string is a u64 length and that many bytes. An array is u32 element type, u64 count, elements. A bool is one byte,
// 0 or 1. Alignment is the metadata value general.alignment (u32), 32 when absent.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace candor::formats::gguf {

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kMinVersion = 2;
inline constexpr uint32_t kMaxVersion = 3;
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint32_t kMinAlignment = 8;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::string_view kSplitNumberKey = "split.no";
inline constexpr std::string_view kSplitCountKey = "split.count";
inline constexpr std::string_view kSplitTensorsKey = "split.tensors.count";

// Of the format.
inline constexpr size_t kMaxKeyBytes = 65535;
inline constexpr size_t kMaxTensorNameBytes = 63;

// Of ours: they bound the memory that any file can make the reader take to about 250 MB; published models stay an
// order of magnitude below.
inline constexpr uint64_t kMaxMetaEntries = uint64_t{1} << 16;
inline constexpr uint64_t kMaxAllKeyBytes = uint64_t{64} << 20;
inline constexpr uint64_t kMaxTensors = uint64_t{1} << 18;
inline constexpr uint64_t kMaxArrayElements = uint64_t{1} << 23;  // of all metadata arrays together

enum class ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

struct ValueTypeInfo {
  std::string_view name;
  uint32_t min_bytes;  // on disk; a string takes at least its length field
};

inline constexpr std::array<ValueTypeInfo, 13> kValueTypes = {{{"u8", 1},
                                                               {"i8", 1},
                                                               {"u16", 2},
                                                               {"i16", 2},
                                                               {"u32", 4},
                                                               {"i32", 4},
                                                               {"f32", 4},
                                                               {"bool", 1},
                                                               {"string", 8},
                                                               {"array", 12},
                                                               {"u64", 8},
                                                               {"i64", 8},
                                                               {"f64", 8}}};

}  // namespace candor::formats::gguf
