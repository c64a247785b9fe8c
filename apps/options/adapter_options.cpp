#include "apps/options/adapter_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/utf8.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;

// Behind the last colon, where that is a number and no part of a path that is there.
std::optional<double> take_scale(std::string& path) {
  std::error_code ignored;
  const size_t colon = path.rfind(':');
  if (colon == std::string::npos || fs::exists(path, ignored)) return std::nullopt;
  double scale = 0.0;
  const char* const end = path.data() + path.size();
  const auto parsed = std::from_chars(path.data() + colon + 1, end, scale);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  path.resize(colon);
  return scale;
}

}  // namespace

Result<AdapterSource> read_adapter(const std::string& text) {
  AdapterSource source;
  std::string path = text;
  std::error_code ignored;
  const size_t mark = text.find('=');
  if (mark != std::string::npos && !fs::exists(text, ignored)) {
    source.name = text.substr(0, mark);
    path = text.substr(mark + 1);
    if (source.name.empty()) {
      return fail(ErrorKind::kInvalidInput, fmt::format("\"{}\" is not NAME=PATH[:SCALE]", clipped(text)));
    }
  }
  source.scale = take_scale(path).value_or(1.0);
  if (path.empty())
    return fail(ErrorKind::kInvalidInput, fmt::format("\"{}\" is not NAME=PATH[:SCALE]", clipped(text)));
  source.path = path;
  if (!source.name.empty()) return source;
  const fs::path whole = source.path.filename().empty() ? source.path.parent_path() : source.path;
  source.name = (fs::is_directory(whole, ignored) ? whole.filename() : whole.stem()).string();
  return source;
}

void add_adapters(CLI::App& command, std::vector<std::string>& adapters, const std::string& help) {
  command.add_option("--adapter", adapters, help)
      ->type_name("NAME=PATH[:SCALE]")
      ->expected(1)
      ->take_all()
      ->check([](const std::string& text) {
        const auto source = read_adapter(text);
        return source ? std::string() : source.error().message;
      });
}

std::vector<AdapterSource> read_adapters(const std::vector<std::string>& adapters) {
  std::vector<AdapterSource> sources;
  for (const std::string& text : adapters) {
    if (auto source = read_adapter(text)) sources.push_back(std::move(*source));
  }
  return sources;
}

std::vector<RequestAdapter> all_adapters(const std::vector<std::string>& adapters) {
  std::vector<RequestAdapter> all;
  for (const AdapterSource& source : read_adapters(adapters)) all.push_back({source.name, 1.0});
  return all;
}

}  // namespace candor::apps
