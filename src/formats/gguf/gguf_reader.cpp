#include "formats/gguf/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "formats/gguf/gguf_format.h"
#include "formats/gguf/split_name.h"
#include "formats/name_order.h"
#include "formats/quote.h"

namespace candor::formats::gguf {
namespace {

constexpr auto kKeyOf = [](const MetaEntry& entry) -> std::string_view { return entry.key; };
constexpr auto kNameOf = [](const TensorView& view) { return view.name; };

// An integer of the split keys; nullopt when absent or of another type.
std::optional<int64_t> split_value(std::span<const MetaEntry> metadata, std::string_view key) {
  const auto at = std::find_if(metadata.begin(), metadata.end(), [key](const MetaEntry& e) { return e.key == key; });
  if (at == metadata.end()) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(&at->value)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&at->value)) {
    return static_cast<int64_t>(std::min<uint64_t>(*value, INT64_MAX));
  }
  return std::nullopt;
}

int64_t parts_of(std::span<const MetaEntry> metadata) {
  return split_value(metadata, kSplitCountKey).value_or(1);
}

// Part `part` (from 1) says that it is that one of n_parts.
Result<void> check_part(const GgufPart& header, const std::filesystem::path& path, int64_t part, int64_t n_parts) {
  const auto number = split_value(header.metadata, kSplitNumberKey);
  const int64_t count = parts_of(header.metadata);
  if (number == part - 1 && count == n_parts) return {};
  const std::string says = number ? std::to_string(*number) : "nothing";
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("{}: this should be part {} of {}, but its split.no is {} (counted from 0) and its split.count "
                  "{}: the parts do not belong together",
                  in_quotes(path.string()), part, n_parts, says, count));
}

}  // namespace

Result<GgufFile::OpenPart> GgufFile::open_part(const std::filesystem::path& path) {
  CANDOR_ASSIGN(platform::MappedFile map, platform::MappedFile::open(path));
  auto header = parse_part(map.bytes(), path.string());
  CANDOR_TRY(map.check_intact());
  if (!header) return std::move(header).error();
  return OpenPart{std::move(map), std::move(*header)};
}

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::filesystem::path& path) {
  CANDOR_ASSIGN(OpenPart part, open_part(path));
  const int64_t n_parts = parts_of(part.header.metadata);
  if (n_parts > 1) return open_split(path, n_parts);
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->add_part(std::move(part.header), path, part.map.bytes().size());
  file->maps_.push_back(std::move(part.map));
  CANDOR_TRY(file->index_names(path.string()));
  return file;
}

Result<std::unique_ptr<GgufFile>> GgufFile::open_split(const std::filesystem::path& path, int64_t n_parts) {
  const auto name = parse_split_name(path);
  if (!name || name->n_parts != n_parts) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("{}: this is one of {} parts, so its name must end in -00001-of-{:05d}.gguf (or another part's "
                    "number), for the others to be found beside it",
                    in_quotes(path.string()), n_parts, n_parts));
  }
  std::unique_ptr<GgufFile> file(new GgufFile);
  for (int64_t part = 1; part <= n_parts; ++part) {
    const std::filesystem::path part_path = split_part_path(path, *name, part);
    auto opened = open_part(part_path);
    if (!opened && opened.error().kind == ErrorKind::kNotFound) {
      return fail(ErrorKind::kNotFound, fmt::format("{}: part {} of {} is missing; put all parts into one folder",
                                                    in_quotes(part_path.string()), part, n_parts));
    }
    if (!opened) return std::move(opened).error();
    CANDOR_TRY(check_part(opened->header, part_path, part, n_parts));
    file->add_part(std::move(opened->header), part_path, opened->map.bytes().size());
    file->maps_.push_back(std::move(opened->map));
  }
  CANDOR_TRY(file->check_split_total(path));
  CANDOR_TRY(file->index_names(path.string()));
  return file;
}

Result<void> GgufFile::check_split_total(const std::filesystem::path& path) const {
  const auto expected = split_value(metadata_, kSplitTensorsKey);
  if (!expected || *expected == static_cast<int64_t>(tensors_.size())) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: split.tensors.count is {}, but the parts hold {} tensors",
                                                    in_quotes(path.string()), *expected, tensors_.size()));
}

Result<std::unique_ptr<GgufFile>> GgufFile::parse(std::span<const std::byte> bytes, std::string_view name) {
  CANDOR_ASSIGN(GgufPart header, parse_part(bytes, name));
  const int64_t n_parts = parts_of(header.metadata);
  if (n_parts > 1) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: this is one of {} parts; they are opened from files", in_quotes(name), n_parts));
  }
  std::unique_ptr<GgufFile> file(new GgufFile);
  file->add_part(std::move(header), std::filesystem::path(name), bytes.size());
  CANDOR_TRY(file->index_names(name));
  return file;
}

void GgufFile::add_part(GgufPart part, const std::filesystem::path& path, size_t n_bytes) {
  if (info_.paths.empty()) {
    info_.format = fmt::format("GGUF v{}", part.version);
    metadata_ = std::move(part.metadata);
  }
  info_.paths.push_back(path);
  info_.n_bytes += n_bytes;
  tensors_.insert(tensors_.end(), part.tensors.begin(), part.tensors.end());
}

Result<void> GgufFile::index_names(std::string_view file) {
  metadata_order_ = order_by_name<MetaEntry>(metadata_, kKeyOf);
  tensor_order_ = order_by_name<TensorView>(tensors_, kNameOf);
  const auto twice = first_duplicate<TensorView>(tensors_, tensor_order_, kNameOf);
  if (!twice) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: tensor {} appears in two parts", in_quotes(file), in_quotes(tensors_[*twice].name)));
}

const MetaValue* GgufFile::meta(std::string_view key) const {
  const MetaEntry* entry = find_by_name<MetaEntry>(metadata_, metadata_order_, key, kKeyOf);
  return entry == nullptr ? nullptr : &entry->value;
}

const TensorView* GgufFile::find(std::string_view name) const {
  return find_by_name<TensorView>(tensors_, tensor_order_, name, kNameOf);
}

Result<void> GgufFile::check_intact() const {
  for (const platform::MappedFile& map : maps_) CANDOR_TRY(map.check_intact());
  return {};
}

void GgufFile::will_read(std::span<const std::byte> part) const {
  for (const platform::MappedFile& map : maps_) map.will_read(part);
}

void GgufFile::has_read(std::span<const std::byte> part) const {
  for (const platform::MappedFile& map : maps_) map.has_read(part);
}

}  // namespace candor::formats::gguf
