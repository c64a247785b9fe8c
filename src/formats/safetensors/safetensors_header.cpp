// The JSON header of a safetensors file, read in one pass: nothing is kept of it but the tensors, so that a header of
// many MB takes time and memory in proportion to the tensors that it names.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "formats/json_text.h"
#include "formats/name_order.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::formats::safetensors {
namespace {

constexpr size_t kMaxTensors = size_t{1} << 18;  // as of GGUF files; published models have some thousands

struct TypeName {
  std::string_view name;
  DType dtype;
};
// Truth values are listed as bytes: no family computes with them.
constexpr TypeName kTypes[] = {{"F64", DType::kF64}, {"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16},
                               {"I64", DType::kI64}, {"I32", DType::kI32}, {"I16", DType::kI16}, {"I8", DType::kI8},
                               {"U8", DType::kI8},   {"BOOL", DType::kI8}, {"F8_E4M3", DType::kF8_E4M3}};

struct Entry {
  TensorView view;  // name still unset
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t name = 0;  // in the list of names
};

// Of tensors that are left out (a convolution over images has five): more than kMaxDims are folded into the outermost.
constexpr int kMaxStatedDims = 8;

// A list of numbers as it stands in the header, of which only the first few matter.
struct Numbers {
  std::array<uint64_t, kMaxStatedDims> values{};
  size_t n = 0;
  bool are_counts = true;  // all are whole and not negative
};

// What a tensor's object says, before it is checked. A member of another kind than expected counts as absent.
struct Row {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<Numbers> shape;
  std::optional<Numbers> range;
};

class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::string_view file_name, std::span<const std::byte> data, std::vector<std::string>& names)
      : file_(file_name), data_(data), names_(names) {}

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return number(0, false); }
  bool number_unsigned(number_unsigned_t value) override { return number(value, true); }
  bool number_float(number_float_t, const string_t&) override { return number(0, false); }
  bool string(string_t& text) override {
    if (depth_ != 2 || member_ != Member::kType) return other();
    row_.dtype = std::move(text);
    return true;
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(false); }
  bool end_object() override {
    --depth_;
    return depth_ != 1 || is_skipped_ || take_row();
  }
  bool start_array(size_t) override { return open(true); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& name) override;
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return header_is(fmt::format("is no valid JSON at byte {}", position));
  }

  std::vector<Entry> entries;
  Error error;

 private:
  enum class Member : uint8_t { kOther, kType, kShape, kRange };

  bool refuse(ErrorKind kind, std::string message) {
    error = {kind, std::move(message)};
    return false;
  }
  bool header_is(const std::string& reason) {
    return refuse(ErrorKind::kInvalidInput, fmt::format("{}: header: {}; download it again", file_, reason));
  }
  std::string place() const { return fmt::format("{}: tensor {}", file_, in_quotes(row_.name)); }
  bool bad(const std::string& reason) {
    return refuse(ErrorKind::kInvalidInput, fmt::format("{}: {}; download the file again", place(), reason));
  }

  // A value that is neither of those that a tensor has.
  bool other();
  bool open(bool is_array);
  bool number(uint64_t value, bool is_count);
  std::optional<Numbers>& list() { return member_ == Member::kShape ? row_.shape : row_.range; }
  bool is_list() const { return member_ == Member::kShape || member_ == Member::kRange; }

  bool take_row();
  bool take_type(Entry& entry);
  bool take_shape(Entry& entry);
  bool take_range(Entry& entry);

  std::string_view file_;
  std::span<const std::byte> data_;
  std::vector<std::string>& names_;
  size_t depth_ = 0;
  bool is_skipped_ = false;  // inside "__metadata__"
  Member member_ = Member::kOther;
  Row row_;
};

bool HeaderReader::other() {
  if (depth_ == 0) {
    return refuse(ErrorKind::kInvalidInput, fmt::format("{}: the header is no JSON object; download it again", file_));
  }
  if (depth_ == 1 && !is_skipped_) return bad("expected an object of dtype, shape and data_offsets");
  if (depth_ == 3 && is_list() && list()) list()->are_counts = false;
  return true;
}

bool HeaderReader::open(bool is_array) {
  if (depth_ == kMaxJsonDepth) return header_is(fmt::format("is nested deeper than {}", kMaxJsonDepth));
  const bool is_wanted = depth_ == 0 || depth_ == 1 ? !is_array : depth_ == 2 && is_array && is_list();
  if (!is_wanted && !other()) return false;
  if (depth_ == 2 && is_wanted) list() = Numbers{};
  ++depth_;
  return true;
}

bool HeaderReader::key(string_t& name) {
  if (depth_ == 1) {
    row_ = {.name = std::move(name), .dtype = {}, .shape = {}, .range = {}};
    is_skipped_ = row_.name == "__metadata__";
    return true;
  }
  if (depth_ != 2) return true;
  member_ = is_skipped_              ? Member::kOther
            : name == "dtype"        ? Member::kType
            : name == "shape"        ? Member::kShape
            : name == "data_offsets" ? Member::kRange
                                     : Member::kOther;
  const bool is_twice = (member_ == Member::kType && row_.dtype) || (is_list() && list());
  return !is_twice || header_is(fmt::format("the key {} appears twice in one object", in_quotes(name)));
}

bool HeaderReader::number(uint64_t value, bool is_count) {
  if (depth_ != 3 || !is_list() || !list()) return other();
  Numbers& numbers = *list();
  if (numbers.n < numbers.values.size()) numbers.values[numbers.n] = value;
  ++numbers.n;
  numbers.are_counts &= is_count;
  return true;
}

bool HeaderReader::take_row() {
  if (!row_.dtype || !row_.shape) return bad("expected an object of dtype, shape and data_offsets");
  if (entries.size() == kMaxTensors) return header_is(fmt::format("names more than {} tensors", kMaxTensors));
  Entry entry;
  if (!take_type(entry) || !take_shape(entry) || !take_range(entry)) return false;
  const auto n_bytes = checked_mul<uint64_t>(static_cast<uint64_t>(entry.view.shape.n_elements()),
                                             static_cast<uint64_t>(dtype_info(entry.view.dtype).block_bytes));
  if (!n_bytes || *n_bytes != entry.end - entry.begin) {
    return bad(fmt::format("data of {} bytes, expected those of shape {}", entry.end - entry.begin,
                           to_string(entry.view.shape)));
  }
  entry.view.data = data_.data() + entry.begin;
  entry.view.n_bytes = static_cast<size_t>(*n_bytes);
  entry.name = names_.size();
  names_.push_back(std::move(row_.name));
  entries.push_back(entry);
  return true;
}

bool HeaderReader::take_type(Entry& entry) {
  const auto* type = std::ranges::find(kTypes, *row_.dtype, &TypeName::name);
  if (type != std::end(kTypes)) return entry.view.dtype = type->dtype, true;
  return refuse(ErrorKind::kUnsupported,
                fmt::format("{}: type {} is not supported (supported: F32, F16, BF16, F8_E4M3)", place(),
                            in_quotes(*row_.dtype)));
}

bool HeaderReader::take_shape(Entry& entry) {
  const Numbers& dims = *row_.shape;
  if (dims.n > dims.values.size()) {
    return bad(fmt::format("a shape of {} dimensions, expected at most {}", dims.n, kMaxStatedDims));
  }
  const size_t n_folded = dims.n > size_t{kMaxDims} ? dims.n - size_t{kMaxDims} : 0;
  int64_t total = 1;
  for (size_t i = 0; i < dims.n; ++i) {
    const bool fits = dims.are_counts && dims.values[i] > 0 && dims.values[i] <= uint64_t{INT64_MAX};
    const auto product = fits ? checked_mul<int64_t>(total, static_cast<int64_t>(dims.values[i])) : std::nullopt;
    if (!product) return bad("a dimension that is no positive number, or too large");
    total = *product;
    const auto own = static_cast<int64_t>(dims.values[i]);
    if (i < n_folded + 1) entry.view.shape.dims[0] = total;
    if (i > n_folded) entry.view.shape.dims[i - n_folded] = own;
  }
  entry.view.shape.n_dims = static_cast<int32_t>(dims.n - n_folded);
  return dims.are_counts || bad("a dimension that is no positive number, or too large");
}

bool HeaderReader::take_range(Entry& entry) {
  if (!row_.range || row_.range->n != 2 || !row_.range->are_counts) return bad("data_offsets must be two numbers");
  entry.begin = row_.range->values[0];
  entry.end = row_.range->values[1];
  if (entry.begin <= entry.end && entry.end <= data_.size()) return true;
  return bad(fmt::format("data at {} to {}, but {} bytes follow the header", entry.begin, entry.end, data_.size()));
}

Result<void> refuse_duplicates(std::span<const std::string> names, std::string_view file_name) {
  const auto name_of = [](const std::string& name) -> std::string_view { return name; };
  const auto twice = first_duplicate(names, order_by_name(names, name_of), name_of);
  if (!twice) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: header: the key {} appears twice in one object; download it "
                                                    "again",
                                                    file_name, in_quotes(names[*twice])));
}

// Sorted by place: each begins where the one before ended, and the last ends the file.
Result<void> check_coverage(std::span<const Entry> entries, size_t n_bytes, std::string_view file_name) {
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      return fail(
          ErrorKind::kInvalidInput,
          fmt::format("{}: tensor {}: data at {}, expected at {}: ranges {}; download the file again", file_name,
                      in_quotes(entry.view.name), entry.begin, at, entry.begin < at ? "overlap" : "leave a gap"));
    }
    at = entry.end;
  }
  if (at == n_bytes) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: the header describes {} bytes of data, the file has {}; "
                                                    "download it again",
                                                    file_name, at, n_bytes));
}

}  // namespace

Result<std::vector<TensorView>> read_header(std::string_view header, std::span<const std::byte> data,
                                            std::string_view file_name, std::vector<std::string>& names) {
  HeaderReader reader(file_name, data, names);
  if (!nlohmann::json::sax_parse(header, &reader)) return std::move(reader.error);
  CANDOR_TRY(refuse_duplicates(names, file_name));
  std::vector<Entry>& entries = reader.entries;
  for (Entry& entry : entries) entry.view.name = names[entry.name];
  std::ranges::sort(entries, {}, &Entry::begin);
  CANDOR_TRY(check_coverage(entries, data.size(), file_name));
  std::vector<TensorView> views;
  views.reserve(entries.size());
  for (const Entry& entry : entries) views.push_back(entry.view);
  return views;
}

}  // namespace candor::formats::safetensors
