#include "serve/openai/json_body.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace candor::openai {
namespace {

// Builds the value from the parser's events and refuses what it must, with the place.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override {
    if (value == 0) return refuse("the number -0");
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
    if (!levels_.back().keys.insert(name).second)
      return refuse(fmt::format("the key \"{}\" twice in one object", name));
    levels_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string words = error.what();
    const size_t detail = words.rfind("; last read");
    fault_ = fmt::format("the body is not valid JSON at byte {}{}", position == 0 ? 0 : position - 1,
                         detail == std::string::npos ? "" : words.substr(detail));
    return false;
  }

  Json take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

 private:
  struct Level {
    Json* value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool refuse(std::string what) {
    if (fault_.empty()) fault_ = "the body holds " + std::move(what);
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
    members.push_back({std::move(level.key), std::move(value)});
    return &members.back().second;
  }
  bool add(Json value) {
    if (++n_values_ > kMaxValues) return refuse(fmt::format("more than {} values", kMaxValues));
    put(std::move(value));
    return true;
  }
  bool open(Json empty) {
    if (levels_.size() >= kMaxDepth) return refuse(fmt::format("values nested deeper than {}", kMaxDepth));
    if (++n_values_ > kMaxValues) return refuse(fmt::format("more than {} values", kMaxValues));
    Json* value = put(std::move(empty));
    levels_.push_back({.value = value, .key = {}, .keys = {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Level> levels_;
  size_t n_values_ = 0;
  std::string fault_;
};

tl::unexpected<ErrorInfo> bad(std::string message) {
  return tl::unexpected(ErrorInfo{.message = std::move(message)});
}

}  // namespace

Checked<Json> parse_body(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return bad("the body is empty, expected a JSON object");
  if (const size_t at = first_invalid_utf8(body); at != body.size()) {
    return bad(fmt::format("the body is not valid UTF-8 at byte {}", at));
  }
  Builder builder;
  if (!Json::sax_parse(body, &builder)) return bad(builder.fault());
  Json json = builder.take();
  if (!json.is_object()) return bad("the body is not a JSON object");
  return json;
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace candor::openai
