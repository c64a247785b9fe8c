#include "text/chat/call_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace candor::text {
namespace {

using Json = nlohmann::ordered_json;

// Builds the value from the parser's events.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    levels_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json* value = nullptr;
    std::string key = {};
    std::unordered_map<std::string, size_t> members = {};  // places in an object
  };

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
    const auto [at, is_new] = level.members.emplace(level.key, members.size());
    if (!is_new) return &((members.begin() + static_cast<std::ptrdiff_t>(at->second))->second = std::move(value));
    members.push_back({std::move(level.key), std::move(value)});
    return &members.back().second;
  }
  bool add(Json value) {
    put(std::move(value));
    return true;
  }
  bool open(Json empty) {
    if (levels_.size() >= kMaxCallDepth) return false;
    Json* const value = put(std::move(empty));
    levels_.push_back({.value = value});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  Json root_;
  std::vector<Level> levels_;
};

}  // namespace

std::optional<Json> read_call_json(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text, &builder)) return std::nullopt;
  return builder.take();
}

}  // namespace candor::text
