#include "formats/gguf/split_name.h"

#include <fmt/format.h>

#include <string_view>

namespace candor::formats::gguf {
namespace {

std::optional<int64_t> five_digits(std::string_view text) {
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::optional<SplitName> parse_split_name(const std::filesystem::path& path) {
  constexpr std::string_view kForm = "-00001-of-00001.gguf";
  const std::string name = path.filename().string();
  if (name.size() < kForm.size()) return std::nullopt;
  const std::string_view tail = std::string_view(name).substr(name.size() - kForm.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
  const auto part = five_digits(tail.substr(1, 5));
  const auto n_parts = five_digits(tail.substr(10, 5));
  if (!part || !n_parts || *part < 1 || *part > *n_parts) return std::nullopt;
  return SplitName{name.substr(0, name.size() - kForm.size()), *part, *n_parts};
}

std::filesystem::path split_part_path(const std::filesystem::path& path, const SplitName& name, int64_t part) {
  return path.parent_path() / fmt::format("{}-{:05d}-of-{:05d}.gguf", name.prefix, part, name.n_parts);
}

}  // namespace candor::formats::gguf
