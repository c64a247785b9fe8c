// Metadata of a GGUF header: keys, values of all thirteen types, and the alignment among them.

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/gguf/byte_source.h"
#include "formats/gguf/gguf_format.h"
#include "formats/gguf/gguf_part.h"
#include "formats/model_file.h"
#include "formats/name_order.h"
#include "formats/quote.h"

namespace candor::formats::gguf {
namespace {

template <class T>
struct Type {
  using type = T;
};

// Calls visit(Type<T>{}) for a number type. REQUIRES: type is one.
template <class Visit>
auto with_number_type(ValueType type, const Visit& visit) {
  switch (type) {
    case ValueType::kUint8:
      return visit(Type<uint8_t>{});
    case ValueType::kInt8:
      return visit(Type<int8_t>{});
    case ValueType::kUint16:
      return visit(Type<uint16_t>{});
    case ValueType::kInt16:
      return visit(Type<int16_t>{});
    case ValueType::kUint32:
      return visit(Type<uint32_t>{});
    case ValueType::kInt32:
      return visit(Type<int32_t>{});
    case ValueType::kFloat32:
      return visit(Type<float>{});
    case ValueType::kUint64:
      return visit(Type<uint64_t>{});
    case ValueType::kInt64:
      return visit(Type<int64_t>{});
    default:
      return visit(Type<double>{});
  }
}

class MetadataParser {
 public:
  explicit MetadataParser(ByteSource& source) : source_(source) {}

  Result<MetaEntry> entry();
  uint32_t alignment() const { return alignment_; }

 private:
  Result<ValueType> value_type(std::string_view what);
  Result<bool> boolean();
  Result<MetaValue> scalar(ValueType type);
  Result<MetaArray> array();
  Result<uint64_t> array_count(ValueType element);
  Result<MetaArray> strings(uint64_t count);
  Result<MetaArray> booleans(uint64_t count);
  template <class T>
  Result<MetaArray> numbers(uint64_t count);
  Result<void> take_alignment(ValueType type, const MetaValue& value, uint64_t start);

  ByteSource& source_;
  uint32_t alignment_ = kDefaultAlignment;
  uint64_t array_elements_left_ = kMaxArrayElements;
  uint64_t key_bytes_left_ = kMaxAllKeyBytes;
};

Result<ValueType> MetadataParser::value_type(std::string_view what) {
  const uint64_t start = source_.offset();
  CANDOR_ASSIGN(const uint32_t number, source_.number<uint32_t>(what));
  if (number >= kValueTypes.size()) {
    return source_.error_at(start, ErrorKind::kUnsupported,
                            fmt::format("{} is {}, but the format has 0 to {}", what, number, kValueTypes.size() - 1));
  }
  return static_cast<ValueType>(number);
}

Result<bool> MetadataParser::boolean() {
  const uint64_t start = source_.offset();
  CANDOR_ASSIGN(const uint8_t byte, source_.number<uint8_t>("a bool"));
  if (byte > 1) return source_.invalid_at(start, fmt::format("a bool is {}, not 0 or 1", byte));
  return byte == 1;
}

Result<MetaValue> MetadataParser::scalar(ValueType type) {
  if (type == ValueType::kBool) {
    CANDOR_ASSIGN(const bool value, boolean());
    return value;
  }
  if (type == ValueType::kString) {
    CANDOR_ASSIGN(const std::string_view text, source_.text("the string's length"));
    return text;
  }
  return with_number_type(type, [this]<class T>(Type<T>) -> Result<MetaValue> {
    CANDOR_ASSIGN(const T value, source_.number<T>("the value"));
    if constexpr (std::is_floating_point_v<T>) {
      return MetaValue(static_cast<double>(value));
    } else if constexpr (std::is_signed_v<T>) {
      return MetaValue(static_cast<int64_t>(value));
    } else {
      return MetaValue(static_cast<uint64_t>(value));
    }
  });
}

Result<uint64_t> MetadataParser::array_count(ValueType element) {
  const uint64_t start = source_.offset();
  CANDOR_ASSIGN(const uint64_t count, source_.number<uint64_t>("the array's count"));
  const ValueTypeInfo& info = kValueTypes[static_cast<size_t>(element)];
  if (count > source_.remaining() / info.min_bytes) {
    return source_.invalid_at(start, fmt::format("the array says {} elements of {}, but {} bytes remain: the file "
                                                 "is cut short or damaged",
                                                 count, info.name, source_.remaining()));
  }
  if (count > array_elements_left_) {
    return source_.invalid_at(start, fmt::format("the array has {} elements, which passes the limit of {} in all "
                                                 "arrays together",
                                                 count, kMaxArrayElements));
  }
  array_elements_left_ -= count;
  return count;
}

Result<MetaArray> MetadataParser::strings(uint64_t count) {
  std::vector<std::string_view> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    CANDOR_ASSIGN(const std::string_view text, source_.text("a string's length"));
    values.push_back(text);
  }
  return MetaArray(std::move(values));
}

Result<MetaArray> MetadataParser::booleans(uint64_t count) {
  std::vector<bool> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    CANDOR_ASSIGN(const bool value, boolean());
    values.push_back(value);
  }
  return MetaArray(std::move(values));
}

template <class T>
Result<MetaArray> MetadataParser::numbers(uint64_t count) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  std::vector<Wide> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t start = source_.offset();
    CANDOR_ASSIGN(const T value, source_.number<T>("an element"));
    if constexpr (std::is_same_v<T, uint64_t>) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return source_.invalid_at(start, fmt::format("array element {} is {}, above 2^63 - 1", i, value));
      }
    }
    values.push_back(static_cast<Wide>(value));
  }
  return MetaArray(std::move(values));
}

Result<MetaArray> MetadataParser::array() {
  const uint64_t start = source_.offset();
  CANDOR_ASSIGN(const ValueType element, value_type("the array's element type"));
  if (element == ValueType::kArray) {
    return source_.error_at(start, ErrorKind::kUnsupported, "an array of arrays is not supported");
  }
  CANDOR_ASSIGN(const uint64_t count, array_count(element));
  if (element == ValueType::kString) return strings(count);
  if (element == ValueType::kBool) return booleans(count);
  return with_number_type(element, [this, count]<class T>(Type<T>) { return numbers<T>(count); });
}

Result<void> MetadataParser::take_alignment(ValueType type, const MetaValue& value, uint64_t start) {
  if (type != ValueType::kUint32) {
    return source_.invalid_at(
        start, fmt::format("the alignment has type {}, not u32", kValueTypes[static_cast<size_t>(type)].name));
  }
  const uint64_t alignment = std::get<uint64_t>(value);
  if (alignment < kMinAlignment || !std::has_single_bit(alignment)) {
    return source_.invalid_at(
        start, fmt::format("the alignment is {}, not a power of two of at least {}", alignment, kMinAlignment));
  }
  alignment_ = static_cast<uint32_t>(alignment);
  return {};
}

Result<MetaEntry> MetadataParser::entry() {
  const uint64_t key_start = source_.offset();
  CANDOR_ASSIGN(const std::string_view key, source_.text("the key's length"));
  if (key.empty()) return source_.invalid_at(key_start, "the key is empty");
  if (key.size() > kMaxKeyBytes) {
    return source_.invalid_at(key_start,
                              fmt::format("the key has {} bytes, at most {} are allowed", key.size(), kMaxKeyBytes));
  }
  if (key.size() > key_bytes_left_) {
    return source_.invalid_at(key_start, fmt::format("the keys pass the limit of {} bytes together", kMaxAllKeyBytes));
  }
  key_bytes_left_ -= key.size();
  const size_t bad = first_invalid_utf8(key);
  if (bad != key.size()) {
    return source_.invalid_at(key_start + 8 + bad, fmt::format("the key {} is not UTF-8", in_quotes(key)));
  }
  source_.set_context("key " + in_quotes(key));
  CANDOR_ASSIGN(const ValueType type, value_type("the value's type"));
  const uint64_t value_start = source_.offset();
  MetaEntry entry{std::string(key), MetaValue(int64_t{0})};
  if (type == ValueType::kArray) {
    CANDOR_ASSIGN(entry.value, array());
  } else {
    CANDOR_ASSIGN(entry.value, scalar(type));
  }
  if (key == kAlignmentKey) CANDOR_TRY(take_alignment(type, entry.value, value_start));
  return entry;
}

}  // namespace

Result<Metadata> parse_metadata(ByteSource& source, uint64_t n_entries) {
  MetadataParser parser(source);
  Metadata metadata;
  std::vector<uint64_t> starts;
  metadata.entries.reserve(n_entries);
  starts.reserve(n_entries);
  for (uint64_t i = 0; i < n_entries; ++i) {
    source.set_context(fmt::format("metadata entry {}", i));
    starts.push_back(source.offset());
    CANDOR_ASSIGN(MetaEntry entry, parser.entry());
    metadata.entries.push_back(std::move(entry));
  }
  source.set_context("");
  const std::span<const MetaEntry> entries = metadata.entries;
  const auto key_of = [](const MetaEntry& entry) -> std::string_view { return entry.key; };
  if (const auto twice = first_duplicate(entries, order_by_name(entries, key_of), key_of)) {
    return source.invalid_at(starts[*twice], fmt::format("key {} appears twice", in_quotes(entries[*twice].key)));
  }
  metadata.alignment = parser.alignment();
  return metadata;
}

}  // namespace candor::formats::gguf
