#include "formats/gguf/gguf_writer.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/utf8.h"
#include "formats/quote.h"

namespace candor::formats::gguf {
namespace {

// Type numbers in the order of GgufScalar's and GgufArray's alternatives.
constexpr std::array kTypeNumbers = {ValueType::kUint8,  ValueType::kInt8,   ValueType::kUint16,  ValueType::kInt16,
                                     ValueType::kUint32, ValueType::kInt32,  ValueType::kFloat32, ValueType::kBool,
                                     ValueType::kString, ValueType::kUint64, ValueType::kInt64,   ValueType::kFloat64};
static_assert(kTypeNumbers.size() == std::variant_size_v<GgufScalar>);
static_assert(kTypeNumbers.size() == std::variant_size_v<GgufArray>);

template <class T>
requires std::is_arithmetic_v<T>
void append(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void append(std::string& out, std::string_view text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void append_value(std::string& out, const GgufScalar& scalar) {
  append(out, static_cast<uint32_t>(kTypeNumbers[scalar.index()]));
  std::visit([&out](const auto& value) { append(out, value); }, scalar);
}

void append_value(std::string& out, const GgufArray& array) {
  append(out, static_cast<uint32_t>(ValueType::kArray));
  append(out, static_cast<uint32_t>(kTypeNumbers[array.index()]));
  std::visit(
      [&out]<class T>(const std::vector<T>& values) {
        append(out, static_cast<uint64_t>(values.size()));
        for (const auto& value : values) append(out, static_cast<const T&>(value));
      },
      array);
}

// what: "key" or "tensor name".
Result<void> check_name(std::string_view what, std::string_view name, size_t max_bytes,
                        const GgufHeader::Names& taken) {
  std::string reason;
  if (name.empty()) reason = "is empty";
  if (name.size() > max_bytes) reason = fmt::format("has {} bytes, at most {} are allowed", name.size(), max_bytes);
  if (first_invalid_utf8(name) != name.size()) reason = "is not UTF-8";
  if (taken.contains(name)) reason = "is given twice";
  if (reason.empty()) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("cannot write GGUF: {} {} {}", what, in_quotes(name), reason));
}

// Empty when the shape is not one that the type can have.
std::optional<size_t> bytes_of(DType dtype, const Shape& shape) {
  const DTypeInfo& info = dtype_info(dtype);
  if (shape.n_dims < 0 || shape.n_dims > kMaxDims) return std::nullopt;
  int64_t n_elements = 1;
  for (int i = 0; i < shape.n_dims; ++i) {
    const auto product = checked_mul(n_elements, shape[i]);
    if (shape[i] <= 0 || !product) return std::nullopt;
    n_elements = *product;
  }
  if (shape.row_elements() % info.block_elements != 0) return std::nullopt;
  return tensor_bytes_of(dtype, shape);
}

}  // namespace

GgufHeader::GgufHeader(uint32_t alignment) : alignment_(alignment) {
  CANDOR_CHECK(alignment >= kMinAlignment && std::has_single_bit(alignment));
  if (alignment == kDefaultAlignment) return;
  append(metadata_, kAlignmentKey);
  append_value(metadata_, GgufScalar(alignment));
  keys_.emplace(kAlignmentKey);
  n_meta_ = 1;
}

Result<void> GgufHeader::add_meta(std::string_view key, const GgufValue& value) {
  CANDOR_TRY(check_name("key", key, kMaxKeyBytes, keys_));
  if (key == kAlignmentKey) {
    return fail(ErrorKind::kInvalidInput, "cannot write GGUF: general.alignment is set when the header is made");
  }
  append(metadata_, key);
  std::visit([this](const auto& scalar_or_array) { append_value(metadata_, scalar_or_array); }, value);
  keys_.emplace(key);
  ++n_meta_;
  return {};
}

Result<void> GgufHeader::add_tensor(std::string_view name, DType dtype, const Shape& shape) {
  CANDOR_TRY(check_name("tensor name", name, kMaxTensorNameBytes, names_));
  const std::optional<size_t> n_bytes = bytes_of(dtype, shape);
  if (!n_bytes) {
    return fail(ErrorKind::kInvalidInput, fmt::format("cannot write GGUF: tensor {} cannot have shape {} as {}",
                                                      in_quotes(name), to_string(shape), dtype_info(dtype).name));
  }
  append(directory_, name);
  append(directory_, static_cast<uint32_t>(shape.n_dims));
  for (int i = shape.n_dims - 1; i >= 0; --i) append(directory_, static_cast<uint64_t>(shape[i]));
  append(directory_, static_cast<uint32_t>(dtype));
  append(directory_, data_end_);
  names_.emplace(name);
  tensor_bytes_.push_back(*n_bytes);
  data_end_ += round_up<uint64_t>(*n_bytes, alignment_);
  return {};
}

std::vector<std::byte> GgufHeader::bytes() const {
  std::string out(kMagic);
  append(out, kMaxVersion);
  append(out, static_cast<uint64_t>(names_.size()));
  append(out, n_meta_);
  out += metadata_;
  out += directory_;
  out.resize(round_up<size_t>(out.size(), alignment_), '\0');
  const auto view = std::as_bytes(std::span(out));
  return {view.begin(), view.end()};
}

Result<GgufWriter> GgufWriter::create(const std::filesystem::path& path, const GgufHeader& header) {
  CANDOR_ASSIGN(NewFile file, NewFile::create(path));
  CANDOR_TRY(file.put(header.bytes()));
  return GgufWriter(std::move(file), header);
}

Result<void> GgufWriter::write_tensor(std::span<const std::byte> bytes) {
  CANDOR_CHECK(file_.is_open() && n_written_ < tensor_bytes_.size());
  CANDOR_CHECK(bytes.size() == tensor_bytes_[n_written_]);
  CANDOR_TRY(file_.put(bytes));
  ++n_written_;
  const std::vector<std::byte> padding(round_up<size_t>(bytes.size(), alignment_) - bytes.size());
  return file_.put(padding);
}

Result<void> GgufWriter::finish() {
  CANDOR_CHECK(file_.is_open() && n_written_ == tensor_bytes_.size());
  return file_.finish();
}

}  // namespace candor::formats::gguf
