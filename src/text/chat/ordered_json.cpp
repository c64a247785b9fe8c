#include "text/chat/ordered_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace candor::text {
namespace {

using Json = nlohmann::ordered_json;

// Builds the value from the parser's events and refuses what it must, with the place.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override {
    if (value == 0 && !limits_.allows_minus_zero) return refuse("the number -0");
    return add(value);
  }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override {
    if (!std::isfinite(value)) return refuse("a number that no double can hold");
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    Level& level = levels_.back();
    const auto [it, is_new] = level.keys.emplace(name, level.keys.size());
    if (!is_new && !limits_.keys_may_repeat)
      return refuse(fmt::format("the key \"{}\" twice in one object", clipped(name)));
    level.at = it->second;
    level.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string words = error.what();
    const size_t detail = words.rfind("; last read");
    constexpr size_t kMostRead = 100;  // what the parser read last may be megabytes
    const std::string last = detail == std::string::npos ? "" : clipped(words.substr(detail), kMostRead);
    fault_ = fmt::format("is not valid JSON at byte {}{}", position == 0 ? 0 : position - 1, last);
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

 private:
  struct Level {
    Json* value;
    std::string key{};
    size_t at = 0;  // of the key's member
    std::unordered_map<std::string, size_t> keys{};
  };

  bool refuse(std::string what) {
    if (fault_.empty()) fault_ = "holds " + std::move(what);
    return false;
  }

  // Not by operator[], which searches the object anew for each key.
  Json* put(Json value) {
    if (levels_.empty()) return &(root_ = std::move(value));
    Level& level = levels_.back();
    if (level.value->is_array()) {
      auto& items = level.value->get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    auto& members = level.value->get_ref<Json::object_t&>();
    const auto at = static_cast<std::ptrdiff_t>(level.at);
    if (level.at == members.size()) {
      members.push_back({std::move(level.key), std::move(value)});
    } else {
      (members.begin() + at)->second = std::move(value);
    }
    return &(members.begin() + at)->second;
  }
  bool add(Json value) {
    if (!count()) return false;
    put(std::move(value));
    return true;
  }
  bool open(Json empty) {
    if (levels_.size() >= limits_.depth) return refuse(fmt::format("values nested deeper than {}", limits_.depth));
    if (!count()) return false;
    Json* value = put(std::move(empty));
    levels_.push_back({.value = value});
    return true;
  }
  bool count() {
    return ++n_values_ <= limits_.n_values || refuse(fmt::format("more than {} values", limits_.n_values));
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Json root_;
  std::vector<Level> levels_;
  size_t n_values_ = 0;
  std::string fault_;
};

}  // namespace

Result<Json> read_ordered_json(std::string_view text, const JsonLimits& limits) {
  TreeBuilder builder(limits);
  if (!Json::sax_parse(text, &builder)) return fail(ErrorKind::kInvalidInput, builder.fault());
  return builder.take();
}

}  // namespace candor::text
