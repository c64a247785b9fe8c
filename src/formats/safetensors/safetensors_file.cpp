#include "formats/safetensors/safetensors_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "formats/quote.h"

namespace candor::formats::safetensors {
namespace {

constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;
constexpr size_t kLengthBytes = 8;

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
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
  auto tensors = read_header(text.substr(kLengthBytes, header_bytes), bytes.subspan(kLengthBytes + header_bytes), name,
                             file.names_);
  CANDOR_TRY(file.check_intact());
  if (!tensors) return std::move(tensors).error();
  file.tensors_ = std::move(*tensors);
  return file;
}

}  // namespace candor::formats::safetensors
