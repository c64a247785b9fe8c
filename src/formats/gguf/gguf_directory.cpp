// Tensor directory of a GGUF header: shapes, types and where the data lies.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf/byte_source.h"
#include "formats/gguf/gguf_format.h"
#include "formats/gguf/gguf_part.h"
#include "formats/name_order.h"
#include "formats/quote.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::formats::gguf {
namespace {

struct Entry {
  TensorView view;      // data still unset
  uint64_t offset = 0;  // from the start of the data
  uint64_t start = 0;   // of the directory entry in the file
};

Result<std::string_view> parse_name(ByteSource& source) {
  const uint64_t start = source.offset();
  CANDOR_ASSIGN(const std::string_view name, source.text("the name's length"));
  if (name.empty()) return source.invalid_at(start, "the tensor's name is empty");
  if (name.size() > kMaxTensorNameBytes) {
    return source.invalid_at(start, fmt::format("the tensor's name {} has {} bytes, at most {} are allowed",
                                                in_quotes(name), name.size(), kMaxTensorNameBytes));
  }
  if (first_invalid_utf8(name) != name.size()) {
    return source.invalid_at(start, fmt::format("the tensor's name {} is not UTF-8", in_quotes(name)));
  }
  return name;
}

// Reads dimensions, innermost first as they stand, into a shape that has them outermost first.
Result<Shape> parse_shape(ByteSource& source) {
  const uint64_t start = source.offset();
  CANDOR_ASSIGN(const uint32_t n_dims, source.number<uint32_t>("the number of dimensions"));
  if (n_dims > static_cast<uint32_t>(kMaxDims)) {
    return source.invalid_at(start,
                             fmt::format("the tensor has {} dimensions, at most {} are allowed", n_dims, kMaxDims));
  }
  Shape shape;
  shape.n_dims = static_cast<int32_t>(n_dims);
  int64_t n_elements = 1;
  for (uint32_t i = 0; i < n_dims; ++i) {
    const uint64_t at = source.offset();
    CANDOR_ASSIGN(const int64_t dim, source.number<int64_t>("a dimension"));
    if (dim <= 0) return source.invalid_at(at, fmt::format("dimension {} is {}, not positive", i, dim));
    const auto product = checked_mul(n_elements, dim);
    if (!product) return source.invalid_at(at, fmt::format("dimension {} of {} overflows the element count", i, dim));
    n_elements = *product;
    shape.dims[n_dims - 1 - i] = dim;
  }
  return shape;
}

Result<DType> parse_dtype(ByteSource& source) {
  const uint64_t start = source.offset();
  CANDOR_ASSIGN(const uint32_t number, source.number<uint32_t>("the tensor type"));
  if (const DTypeInfo* info = find_dtype(number)) return info->dtype;
  return source.error_at(start, ErrorKind::kUnsupported,
                         fmt::format("tensor type {} is not known; weights may be {}", number, weight_dtype_names()));
}

Result<size_t> tensor_bytes(const ByteSource& source, uint64_t start, const TensorView& view) {
  const DTypeInfo& info = dtype_info(view.dtype);
  if (view.shape.row_elements() % info.block_elements != 0) {
    return source.invalid_at(start, fmt::format("a row has {} elements, not a multiple of {}'s block of {}",
                                                view.shape.row_elements(), info.name, info.block_elements));
  }
  const auto n_bytes = tensor_bytes_of(view.dtype, view.shape);
  if (!n_bytes) {
    return source.invalid_at(start,
                             fmt::format("shape {} of {} overflows the byte count", to_string(view.shape), info.name));
  }
  return *n_bytes;
}

Result<Entry> parse_entry(ByteSource& source, uint32_t alignment) {
  Entry entry;
  entry.start = source.offset();
  CANDOR_ASSIGN(entry.view.name, parse_name(source));
  source.set_context("tensor " + in_quotes(entry.view.name));
  CANDOR_ASSIGN(entry.view.shape, parse_shape(source));
  CANDOR_ASSIGN(entry.view.dtype, parse_dtype(source));
  CANDOR_ASSIGN(entry.view.n_bytes, tensor_bytes(source, entry.start, entry.view));
  const uint64_t at = source.offset();
  CANDOR_ASSIGN(entry.offset, source.number<uint64_t>("the data offset"));
  if (entry.offset % alignment != 0) {
    return source.invalid_at(
        at, fmt::format("the data offset is {}, not a multiple of the alignment {}", entry.offset, alignment));
  }
  return entry;
}

Error ends_outside(const ByteSource& source, const Entry& entry, uint64_t data_offset) {
  const auto start = checked_add(data_offset, entry.offset);
  const auto end = start ? checked_add<uint64_t>(*start, entry.view.n_bytes) : std::nullopt;
  const std::string needed = end ? std::to_string(*end) : "more than 2^64";
  return source.invalid_at(entry.start,
                           fmt::format("tensor {} ends outside: file has {} bytes, header needs {}: the file is cut "
                                       "short or damaged; download it again",
                                       in_quotes(entry.view.name), source.size(), needed));
}

// Sets each view's data. Of several tensors that end outside the file, the one that ends last is named.
Result<void> place_inside(const ByteSource& source, uint64_t data_offset, std::vector<Entry>& entries) {
  const uint64_t n_data = source.size() > data_offset ? source.size() - data_offset : 0;
  const Entry* outside = nullptr;
  for (Entry& entry : entries) {
    if (entry.offset > n_data || entry.view.n_bytes > n_data - entry.offset) {
      if (outside == nullptr || entry.offset > outside->offset) outside = &entry;
      continue;
    }
    entry.view.data = source.bytes().data() + data_offset + entry.offset;
  }
  if (outside != nullptr) return ends_outside(source, *outside, data_offset);
  return {};
}

// REQUIRES: every entry is placed inside the file.
Result<void> refuse_overlap(const ByteSource& source, std::span<const Entry> entries) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return entries[a].offset < entries[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Entry& before = entries[order[i - 1]];
    const Entry& after = entries[order[i]];
    if (after.offset - before.offset < before.view.n_bytes) {
      return source.invalid_at(after.start, fmt::format("the data of tensors {} and {} overlaps",
                                                        in_quotes(before.view.name), in_quotes(after.view.name)));
    }
  }
  return {};
}

Result<void> refuse_duplicates(const ByteSource& source, std::span<const Entry> entries) {
  const auto name_of = [](const Entry& entry) { return entry.view.name; };
  const auto twice = first_duplicate(entries, order_by_name(entries, name_of), name_of);
  if (!twice) return {};
  const Entry& entry = entries[*twice];
  return source.invalid_at(entry.start, fmt::format("tensor {} appears twice", in_quotes(entry.view.name)));
}

}  // namespace

Result<std::vector<TensorView>> parse_directory(ByteSource& source, uint64_t n_tensors, uint32_t alignment) {
  std::vector<Entry> entries;
  entries.reserve(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    source.set_context(fmt::format("tensor {}", i));
    CANDOR_ASSIGN(Entry entry, parse_entry(source, alignment));
    entries.push_back(entry);
  }
  source.set_context("");
  CANDOR_TRY(refuse_duplicates(source, entries));
  CANDOR_TRY(place_inside(source, round_up<uint64_t>(source.offset(), alignment), entries));
  CANDOR_TRY(refuse_overlap(source, entries));
  std::vector<TensorView> views;
  views.reserve(entries.size());
  for (const Entry& entry : entries) views.push_back(entry.view);
  return views;
}

}  // namespace candor::formats::gguf
