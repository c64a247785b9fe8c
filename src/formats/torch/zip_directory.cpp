#include "formats/torch/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "formats/quote.h"

namespace candor::formats::torch {
namespace {

constexpr std::string_view kEndMark{"PK\x05\x06", 4};
constexpr std::string_view kEntryMark{"PK\x01\x02", 4};
constexpr std::string_view kFileMark{"PK\x03\x04", 4};
constexpr size_t kEndBytes = 22;
constexpr size_t kEntryBytes = 46;
constexpr size_t kFileBytes = 30;
constexpr size_t kMostComment = 65535;

class Directory {
 public:
  Directory(std::span<const std::byte> archive, std::string_view file_name)
      : text_(reinterpret_cast<const char*>(archive.data()), archive.size()), bytes_(archive), name_(file_name) {}

  Result<std::vector<StoredFile>> read() {
    const size_t end = text_.size() < kEndBytes ? std::string_view::npos : text_.rfind(kEndMark);
    if (end == std::string_view::npos || text_.size() - end < kEndBytes ||
        text_.size() - end > kEndBytes + kMostComment) {
      return bad("is no archive as torch.save writes it since version 1.6");
    }
    const uint64_t n = number<uint16_t>(end + 10);
    if (number<uint16_t>(end + 4) != 0 || number<uint16_t>(end + 8) != n) return bad("is a part of an archive");
    size_t at = number<uint32_t>(end + 16);
    std::vector<StoredFile> files;
    files.reserve(std::min<size_t>(n, text_.size() / kEntryBytes));
    for (uint64_t i = 0; i < n; ++i) CANDOR_TRY(read_entry(at, files));
    return files;
  }

 private:
  Error bad(std::string_view reason) const {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}", name_, reason));
  }

  template <typename T>
  T number(size_t at) const {
    T value{};
    std::memcpy(&value, text_.data() + at, sizeof(value));
    return value;
  }

  bool has(size_t at, size_t n, std::string_view mark) const {
    return at <= text_.size() && n <= text_.size() - at && text_.substr(at).starts_with(mark);
  }

  // at: moves on to the next one.
  Result<void> read_entry(size_t& at, std::vector<StoredFile>& files) const {
    constexpr std::string_view kBroken = "its directory is broken: download it again";
    if (!has(at, kEntryBytes, kEntryMark)) return bad(kBroken);
    const size_t n_name = number<uint16_t>(at + 28);
    const size_t n_all = kEntryBytes + n_name + number<uint16_t>(at + 30) + number<uint16_t>(at + 32);
    if (!has(at, n_all, kEntryMark)) return bad(kBroken);
    const std::string_view name = text_.substr(at + kEntryBytes, n_name);
    constexpr uint16_t kEncrypted = 1;
    if (number<uint16_t>(at + 10) != 0 || (number<uint16_t>(at + 8) & kEncrypted) != 0) {
      return bad(fmt::format("{} in it is compressed or encrypted, expected as torch.save stores it", in_quotes(name)));
    }
    const size_t n_bytes = number<uint32_t>(at + 24);
    const size_t file = number<uint32_t>(at + 42);
    if (!has(file, kFileBytes, kFileMark)) return bad(kBroken);
    const size_t begin = file + kFileBytes + number<uint16_t>(file + 26) + number<uint16_t>(file + 28);
    if (begin > text_.size() || n_bytes > text_.size() - begin) {
      return bad(fmt::format("{} in it lies outside of the file: download it again", in_quotes(name)));
    }
    files.push_back({name, bytes_.subspan(begin, n_bytes)});
    at += n_all;
    return {};
  }

  std::string_view text_;
  std::span<const std::byte> bytes_;
  std::string_view name_;
};

}  // namespace

Result<std::vector<StoredFile>> read_directory(std::span<const std::byte> archive, std::string_view file_name) {
  return Directory(archive, file_name).read();
}

}  // namespace candor::formats::torch
