#include "formats/safetensors/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "formats/json_text.h"
#include "formats/quote.h"

namespace candor::formats::safetensors {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;
constexpr size_t kLengthBytes = 8;

struct TypeName {
  std::string_view name;
  DType dtype;
};
// Truth values are listed as bytes: no family computes with them.
constexpr TypeName kTypes[] = {{"F64", DType::kF64}, {"F32", DType::kF32}, {"F16", DType::kF16}, {"BF16", DType::kBF16},
                               {"I64", DType::kI64}, {"I32", DType::kI32}, {"I16", DType::kI16}, {"I8", DType::kI8},
                               {"U8", DType::kI8},   {"BOOL", DType::kI8}};

struct Entry {
  TensorView view;
  uint64_t begin = 0;
  uint64_t end = 0;
};

class HeaderReader {
 public:
  HeaderReader(std::string_view file_name, std::span<const std::byte> data) : file_(file_name), data_(data) {}

  Expected<Entry> read(const std::string& name, const json& row) {
    place_ = fmt::format("{}: tensor {}", file_, in_quotes(name));
    if (!row.is_object() || !row.contains("dtype") || !row.contains("shape") || !row.contains("data_offsets")) {
      return bad("expected an object of dtype, shape and data_offsets");
    }
    Entry entry;
    CANDOR_ASSIGN(entry.view.dtype, read_type(row["dtype"]));
    CANDOR_ASSIGN(entry.view.shape, read_shape(row["shape"]));
    CANDOR_TRY(read_range(row["data_offsets"], entry));
    const auto n_bytes = checked_mul<uint64_t>(static_cast<uint64_t>(entry.view.shape.n_elements()),
                                               static_cast<uint64_t>(dtype_info(entry.view.dtype).block_bytes));
    if (!n_bytes || *n_bytes != entry.end - entry.begin) {
      return bad(fmt::format("data of {} bytes, expected those of shape {}", entry.end - entry.begin,
                             to_string(entry.view.shape)));
    }
    entry.view.data = data_.data() + entry.begin;
    entry.view.n_bytes = static_cast<size_t>(*n_bytes);
    return entry;
  }

 private:
  tl::unexpected<Error> bad(const std::string& reason) const {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}; download the file again", place_, reason));
  }

  Expected<DType> read_type(const json& value) const {
    const std::string name = value.is_string() ? value.get<std::string>() : std::string();
    const auto* type = std::ranges::find(kTypes, name, &TypeName::name);
    if (type != std::end(kTypes)) return type->dtype;
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: type {} is not supported (supported: F32, F16, BF16)", place_, in_quotes(name)));
  }

  Expected<Shape> read_shape(const json& value) const {
    if (!value.is_array() || value.size() > kMaxDims) {
      return bad(fmt::format("a shape of {} dimensions, expected at most {}", value.size(), kMaxDims));
    }
    Shape shape;
    int64_t total = 1;
    for (const json& dim : value) {
      const bool is_count = dim.is_number_unsigned() && dim.get<uint64_t>() <= uint64_t{INT64_MAX};
      const auto product = is_count ? checked_mul<int64_t>(total, dim.get<int64_t>()) : std::nullopt;
      if (!product || dim.get<int64_t>() == 0) return bad("a dimension that is no positive number, or too large");
      total = *product;
      shape.dims[static_cast<size_t>(shape.n_dims++)] = dim.get<int64_t>();
    }
    return shape;
  }

  Expected<void> read_range(const json& value, Entry& entry) const {
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || !value[1].is_number_unsigned()) {
      return bad("data_offsets must be two numbers");
    }
    entry.begin = value[0].get<uint64_t>();
    entry.end = value[1].get<uint64_t>();
    if (entry.begin <= entry.end && entry.end <= data_.size()) return {};
    return bad(fmt::format("data at {} to {}, but {} bytes follow the header", entry.begin, entry.end, data_.size()));
  }

  std::string_view file_;
  std::span<const std::byte> data_;
  std::string place_;
};

// Sorted by place: each begins where the one before ended, and the last ends the file.
Expected<void> check_coverage(std::span<const Entry> entries, size_t n_bytes, std::string_view file_name) {
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

Expected<std::vector<TensorView>> read_header(std::string_view header, std::span<const std::byte> data,
                                              std::string_view file_name, std::vector<std::string>& names) {
  CANDOR_ASSIGN(const json rows, parse_json(header, fmt::format("{}: header", file_name)));
  if (!rows.is_object()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the header is no JSON object; download it again", file_name));
  }
  HeaderReader reader(file_name, data);
  std::vector<Entry> entries;
  names.reserve(rows.size());
  for (const auto& [name, row] : rows.items()) {
    if (name == "__metadata__") continue;
    CANDOR_ASSIGN(Entry entry, reader.read(name, row));
    entry.view.name = names.emplace_back(name);
    entries.push_back(entry);
  }
  std::ranges::sort(entries, {}, &Entry::begin);
  CANDOR_TRY(check_coverage(entries, data.size(), file_name));
  std::vector<TensorView> views;
  for (const Entry& entry : entries) views.push_back(entry.view);
  return views;
}

Expected<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  CANDOR_ASSIGN(platform::MappedFile map, platform::MappedFile::open(path));
  SafetensorsFile file(std::move(map));
  const std::span<const std::byte> bytes = file.map_.bytes();
  const std::string name = in_quotes(path.string());
  if (bytes.size() < kLengthBytes) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("{}: the file has {} bytes, too few for safetensors; download it again", name, bytes.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("version ")) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: looks like a Git-LFS pointer: download the real file (git lfs pull)", name));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > bytes.size() - kLengthBytes || length > kMaxHeaderBytes) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: a header of {} bytes, expected at most {} and no more than the file's {}; download it "
                            "again",
                            name, length, kMaxHeaderBytes, bytes.size()));
  }
  const size_t header_bytes = static_cast<size_t>(length);
  CANDOR_ASSIGN(file.tensors_, read_header(text.substr(kLengthBytes, header_bytes),
                                           bytes.subspan(kLengthBytes + header_bytes), name, file.names_));
  return file;
}

}  // namespace candor::formats::safetensors
