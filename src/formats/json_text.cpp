#include "formats/json_text.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/quote.h"
#include "platform/mapped_file.h"

namespace candor::formats {
namespace {

using nlohmann::json;

// About what the library takes for each, allocator and growth included.
constexpr size_t kValueBytes = 32;
constexpr size_t kMemberBytes = 112;
constexpr size_t kContainerBytes = 64;
constexpr size_t kStringBytes = 48;
constexpr size_t kShortString = 15;  // needs no memory of its own

size_t text_bytes(const std::string& text) {
  return text.size() > kShortString ? text.size() + 16 : 0;
}

// Builds the value in one pass, and stops at the first thing that is too deep, too much, or there twice.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return place(nullptr, 0); }
  bool boolean(bool value) override { return place(value, 0); }
  bool number_integer(number_integer_t value) override { return place(value, 0); }
  bool number_unsigned(number_unsigned_t value) override { return place(value, 0); }
  bool number_float(number_float_t value, const string_t&) override { return place(value, 0); }
  bool string(string_t& text) override {
    const size_t n_bytes = kStringBytes + text_bytes(text);
    return place(std::move(text), n_bytes);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!spend(kMemberBytes + text_bytes(name))) return false;
    const auto [at, is_new] = open_.back()->get_ref<json::object_t&>().try_emplace(name);
    member_ = &at->second;
    if (!is_new) reason = fmt::format("the key {} appears twice in one object", in_quotes(name));
    return is_new;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    reason = fmt::format("is no valid JSON at byte {}", position);
    return false;
  }

  json result;
  std::string reason;

 private:
  bool spend(size_t n_bytes) {
    if (n_bytes <= bytes_left_) return bytes_left_ -= n_bytes, true;
    reason = fmt::format("takes more than {} MiB of memory when it is read", kMaxJsonMemory >> 20);
    return false;
  }

  // Where the value that comes next stands. A container's address holds until it is closed: its parent grows only then.
  json& next_place() {
    if (open_.empty()) return result;
    return open_.back()->is_array() ? open_.back()->get_ref<json::array_t&>().emplace_back() : *member_;
  }

  bool place(json one, size_t n_bytes) {
    if (!spend(kValueBytes + n_bytes)) return false;
    next_place() = std::move(one);
    return true;
  }

  bool open(json container) {
    if (open_.size() == kMaxJsonDepth) {
      reason = fmt::format("is nested deeper than {}", kMaxJsonDepth);
      return false;
    }
    if (!spend(kValueBytes + kContainerBytes)) return false;
    json& at = next_place();
    at = std::move(container);
    open_.push_back(&at);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<json*> open_;
  json* member_ = nullptr;
  size_t bytes_left_ = kMaxJsonMemory;
};

// Python writes Infinity for what JSON has no number for: the text with a large one in its place, as long.
std::string without_infinity(std::string_view text) {
  constexpr std::string_view kInfinity = "Infinity";
  std::string result(text);
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && text.substr(i).starts_with(kInfinity)) {
      result.replace(i, kInfinity.size(), "1e300   ");
    }
  }
  return result;
}

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view name, std::string_view remedy) {
  Builder builder;
  if (json::sax_parse(text, &builder)) return std::move(builder.result);
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}; {}", name, builder.reason, remedy));
}

Result<json> read_json_file(const std::filesystem::path& path, size_t max_bytes) {
  CANDOR_ASSIGN(const platform::MappedFile file, platform::MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  const std::string name = in_quotes(path.string());
  if (bytes.size() > max_bytes) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the file has {} bytes, expected at most {} for its kind",
                                                      name, bytes.size(), max_bytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  auto value = parse_json(text, name);
  if (!value && text.find("Infinity") != std::string_view::npos) value = parse_json(without_infinity(text), name);
  CANDOR_TRY(file.check_intact());
  return value;
}

}  // namespace candor::formats
