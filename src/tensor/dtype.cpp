#include "tensor/dtype.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "tensor/weight_formats.h"

namespace candor {
namespace {

// Known by size only: no weight may have them.
constexpr std::array kOthers = {
    DTypeInfo{DType::kQ8_1, "Q8_1", 32, 36, false},     DTypeInfo{DType::kQ8_K, "Q8_K", 256, 292, false},
    DTypeInfo{DType::kI8, "I8", 1, 1, false},           DTypeInfo{DType::kI16, "I16", 1, 2, false},
    DTypeInfo{DType::kI32, "I32", 1, 4, false},         DTypeInfo{DType::kI64, "I64", 1, 8, false},
    DTypeInfo{DType::kF64, "F64", 1, 8, false},         DTypeInfo{DType::kNVFP4, "NVFP4", 64, 36, false},
    DTypeInfo{DType::kF8_E4M3, "F8_E4M3", 1, 1, false},
};

template <class... Blocks>
constexpr auto all_types(BlockList<Blocks...>) {
  std::array<DTypeInfo, kOthers.size() + sizeof...(Blocks)> types{DTypeInfo{
      Blocks::kType, Blocks::kName, Blocks::kElements, sizeof(Blocks), true, quant::row_header_bytes<Blocks>()}...};
  std::ranges::copy(kOthers, types.begin() + sizeof...(Blocks));
  std::ranges::sort(types, {}, &DTypeInfo::dtype);
  return types;
}

// Ascending by number.
constexpr auto kTypes = all_types(WeightBlocks{});
static_assert(std::ranges::adjacent_find(kTypes, {}, &DTypeInfo::dtype) == kTypes.end(), "a type is listed twice");

// The types that a file may name come first.
constexpr auto kOfFiles = std::span(kTypes).first(
    static_cast<size_t>(std::ranges::lower_bound(kTypes, DType::kQ4_KFast, {}, &DTypeInfo::dtype) - kTypes.begin()));

const DTypeInfo* find_in(std::span<const DTypeInfo> types, uint32_t number) {
  const auto at = std::ranges::lower_bound(types, number, {},
                                           [](const DTypeInfo& info) { return static_cast<uint32_t>(info.dtype); });
  return at == types.end() || static_cast<uint32_t>(at->dtype) != number ? nullptr : &*at;
}

template <class... Blocks>
std::string join_names(BlockList<Blocks...>) {
  std::string names;
  for (const DTypeInfo* info : {find_in(kOfFiles, static_cast<uint32_t>(Blocks::kType))...}) {
    if (info != nullptr) names += (names.empty() ? "" : ", ") + std::string(info->name);
  }
  return names;
}

}  // namespace

std::span<const DTypeInfo> dtype_table() {
  return kOfFiles;
}

const DTypeInfo* find_dtype(uint32_t number) {
  return find_in(kOfFiles, number);
}

const DTypeInfo* find_dtype(std::string_view name) {
  const auto at = std::ranges::find(kOfFiles, name, &DTypeInfo::name);
  return at == kOfFiles.end() ? nullptr : &*at;
}

const DTypeInfo& dtype_info(DType dtype) {
  const DTypeInfo* info = find_in(kTypes, static_cast<uint32_t>(dtype));
  CANDOR_CHECK(info != nullptr);
  return *info;
}

size_t row_bytes(const DTypeInfo& info, int64_t n) {
  return static_cast<size_t>(info.row_header_bytes) +
         static_cast<size_t>(n / info.block_elements) * static_cast<size_t>(info.block_bytes);
}

std::string_view weight_dtype_names() {
  static const std::string names = join_names(WeightBlocks{});
  return names;
}

}  // namespace candor
