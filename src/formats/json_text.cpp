#include "formats/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "formats/quote.h"
#include "platform/mapped_file.h"

namespace candor::formats {
namespace {

using nlohmann::json;

// Checks before anything is built: depth and the keys of each open object.
class Checker final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back().insert(name).second) return true;
    reason = fmt::format("the key {} stands twice in one object", in_quotes(name));
    return false;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    reason = fmt::format("is no valid JSON at byte {}", position);
    return false;
  }

  std::string reason;

 private:
  bool open() {
    open_.emplace_back();
    if (open_.size() <= kMaxJsonDepth) return true;
    reason = fmt::format("is nested deeper than {}", kMaxJsonDepth);
    return false;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> open_;
};

}  // namespace

Expected<json> parse_json(std::string_view text, std::string_view name) {
  Checker checker;
  if (!json::sax_parse(text, &checker)) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}; download it again", name, checker.reason));
  }
  json value = json::parse(text, nullptr, false);
  if (!value.is_discarded()) return value;
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: is no valid JSON; download it again", name));
}

Expected<json> read_json_file(const std::filesystem::path& path, size_t max_bytes) {
  CANDOR_ASSIGN(const platform::MappedFile file, platform::MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  const std::string name = in_quotes(path.string());
  if (bytes.size() > max_bytes) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the file has {} bytes, expected at most {} for its kind",
                                                      name, bytes.size(), max_bytes));
  }
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
}

}  // namespace candor::formats
