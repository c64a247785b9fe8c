#include "formats/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "formats/gguf/gguf_reader.h"
#include "formats/quote.h"
#include "platform/mapped_file.h"

namespace candor::formats {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

std::string_view type_name(const MetaValue& value) {
  return std::visit(Overloaded{
                        [](int64_t) -> std::string_view { return "integer"; },
                        [](uint64_t) -> std::string_view { return "integer"; },
                        [](double) -> std::string_view { return "float"; },
                        [](bool) -> std::string_view { return "bool"; },
                        [](std::string_view) -> std::string_view { return "string"; },
                        [](const MetaArray& array) -> std::string_view {
                          constexpr std::array<std::string_view, 4> kNames = {"array of integers", "array of floats",
                                                                              "array of bools", "array of strings"};
                          return kNames[array.index()];
                        },
                    },
                    value);
}

Error about_key(const ModelFile& file, std::string_view key, const std::string& reason) {
  const auto& paths = file.info().paths;
  const std::string where = paths.empty() ? std::string("the model file") : in_quotes(paths.front().string());
  return {ErrorKind::kInvalidInput, fmt::format("{}: key {}: {}", where, in_quotes(key), reason)};
}

Error wrong_type(const ModelFile& file, std::string_view key, const MetaValue& value, std::string_view expected) {
  return about_key(file, key, fmt::format("the type is {}, expected {}", type_name(value), expected));
}

// The value as T; empty when the key is absent.
template <class T>
Result<std::optional<T>> scalar_of(const ModelFile& file, std::string_view key, std::string_view expected) {
  const MetaValue* value = file.meta(key);
  if (value == nullptr) return std::optional<T>();
  if (const T* typed = std::get_if<T>(value)) return std::optional<T>(*typed);
  return wrong_type(file, key, *value, expected);
}

template <class T>
Result<const std::vector<T>*> array_of(const ModelFile& file, std::string_view key, std::string_view expected) {
  const MetaValue* value = file.meta(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<MetaArray>(value);
  const auto* typed = array == nullptr ? nullptr : std::get_if<std::vector<T>>(array);
  if (typed == nullptr) return wrong_type(file, key, *value, expected);
  return typed;
}

// What a user is likely to have instead of a model file, told by its first bytes.
struct Foreign {
  std::string_view prefix;
  std::string_view message;
};

constexpr std::array kForeign = {
    Foreign{"version https://git-lfs", "looks like a Git-LFS pointer: download the real file (git lfs pull)"},
    Foreign{"PK\x03\x04",
            "is a zip archive, as PyTorch checkpoints (.bin, .pt) are: unpickling can run code, so they are "
            "refused; get the model as GGUF (or convert its safetensors)"},
    Foreign{"tjgg", "is an old GGML file (ggjt), from before GGUF; convert the model again"},
    Foreign{"fmgg", "is an old GGML file (ggmf), from before GGUF; convert the model again"},
    Foreign{"lmgg", "is an old GGML file (ggml), from before GGUF; convert the model again"},
    Foreign{"{", "is JSON text, not a model; name the GGUF file itself"},
};

std::string lower_start(std::string_view text) {
  constexpr size_t kEnough = 256;
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  const size_t at = text.find_first_not_of(" \t\r\n");
  std::string start(at == std::string_view::npos ? "" : text.substr(at, kEnough));
  std::transform(start.begin(), start.end(), start.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return start;
}

bool is_html(std::string_view text) {
  const std::string start = lower_start(text.substr(0, 4096));
  constexpr std::array<std::string_view, 5> kOpenings = {"<!doctype", "<html", "<head", "<?xml", "<!--"};
  return std::any_of(kOpenings.begin(), kOpenings.end(),
                     [&](std::string_view opening) { return start.starts_with(opening); });
}

// Protocol 2 and later open with byte 0x80 and the protocol's number.
bool is_pickle(std::string_view text) {
  return static_cast<unsigned char>(text[0]) == 0x80 && text[1] >= 2 && text[1] <= 5;
}

// A u64 length of a JSON header, and its opening brace.
bool is_safetensors(std::string_view text) {
  if (text.size() < 10 || text[8] != '{') return false;
  uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof(length));
  return length >= 2 && length <= text.size() - 8;
}

// Nothing for a GGUF file. REQUIRES: text has at least 4 bytes.
std::optional<std::string> what_else(std::string_view text) {
  if (text.starts_with("GGUF")) return std::nullopt;
  if (is_html(text)) return "looks like HTML, a web page and not the model: download the real file";
  if (is_safetensors(text)) return "is a safetensors file: give the folder that holds it and its config.json";
  if (is_pickle(text)) {
    return "is a Python pickle: unpickling can run code, so it is refused; get the model as GGUF (or convert its "
           "safetensors)";
  }
  for (const Foreign& foreign : kForeign) {
    if (text.starts_with(foreign.prefix)) return std::string(foreign.message);
  }
  return fmt::format("is no model file that is known: it starts with {}, not 'GGUF'", in_quotes(text.substr(0, 4)));
}

}  // namespace

Result<std::optional<int64_t>> meta_int(const ModelFile& file, std::string_view key) {
  const MetaValue* value = file.meta(key);
  if (value == nullptr) return std::optional<int64_t>();
  if (const auto* typed = std::get_if<int64_t>(value)) return std::optional<int64_t>(*typed);
  const auto* typed = std::get_if<uint64_t>(value);
  if (typed == nullptr) return wrong_type(file, key, *value, "integer");
  if (*typed <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::optional<int64_t>(static_cast<int64_t>(*typed));
  }
  return about_key(file, key, fmt::format("the value is {}, above 2^63 - 1", *typed));
}

Result<std::optional<double>> meta_float(const ModelFile& file, std::string_view key) {
  return scalar_of<double>(file, key, "float");
}

Result<std::optional<bool>> meta_bool(const ModelFile& file, std::string_view key) {
  return scalar_of<bool>(file, key, "bool");
}

Result<std::optional<std::string_view>> meta_string(const ModelFile& file, std::string_view key) {
  return scalar_of<std::string_view>(file, key, "string");
}

Result<const std::vector<std::string_view>*> meta_strings(const ModelFile& file, std::string_view key) {
  return array_of<std::string_view>(file, key, "array of strings");
}

Result<const std::vector<int64_t>*> meta_ints(const ModelFile& file, std::string_view key) {
  return array_of<int64_t>(file, key, "array of integers");
}

Result<const std::vector<bool>*> meta_bools(const ModelFile& file, std::string_view key) {
  return array_of<bool>(file, key, "array of bools");
}

Result<const std::vector<double>*> meta_floats(const ModelFile& file, std::string_view key) {
  return array_of<double>(file, key, "array of floats");
}

Result<int32_t> require_int(const ModelFile& file, std::string_view key, int64_t min, int64_t max) {
  CANDOR_ASSIGN(const std::optional<int64_t> value, meta_int(file, key));
  if (!value) return about_key(file, key, "the key is missing; it is needed");
  min = std::max<int64_t>(min, std::numeric_limits<int32_t>::min());
  max = std::min<int64_t>(max, std::numeric_limits<int32_t>::max());
  if (*value >= min && *value <= max) return static_cast<int32_t>(*value);
  return about_key(file, key, fmt::format("the value is {}, expected {} to {}", *value, min, max));
}

Result<std::unique_ptr<ModelFile>> open_model_file(const std::filesystem::path& path) {
  CANDOR_ASSIGN(const platform::MappedFile map, platform::MappedFile::open(path));
  const std::span<const std::byte> bytes = map.bytes();
  const std::string name = in_quotes(path.string());
  if (bytes.empty()) return fail(ErrorKind::kInvalidInput, name + ": the file is empty; download it again");
  if (bytes.size() < 4) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the file has {} bytes, too few for a model; download it again", name, bytes.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto other = what_else(text);
  CANDOR_TRY(map.check_intact());
  if (other) return fail(ErrorKind::kInvalidInput, name + ": this " + *other);
  CANDOR_ASSIGN(std::unique_ptr<gguf::GgufFile> file, gguf::GgufFile::open(path));
  return std::unique_ptr<ModelFile>(std::move(file));
}

}  // namespace candor::formats
