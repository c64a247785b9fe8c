#include "image/processor_keys.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace candor::image {

using nlohmann::json;

namespace {

constexpr int64_t kMostPixelsNamed = int64_t{1} << 40;

std::string shown(const json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMost) text.replace(kMost, text.npos, "...");
  return text;
}

}  // namespace

const json* ProcessorKeys::find(std::string_view key) const {
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::string ProcessorKeys::word(std::string_view key) const {
  const json* value = find(key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

Error ProcessorKeys::bad(std::string_view key, const json& value, std::string_view expected) const {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("'preprocessor_config.json': '{}' is {}, expected {}; download it again", key, shown(value),
                          expected));
}

Error ProcessorKeys::unsupported(std::string_view key, std::string_view why) const {
  return fail(ErrorKind::kUnsupported,
              fmt::format("'preprocessor_config.json': '{}': {}; use a model with another image processor", key, why));
}

Result<bool> ProcessorKeys::flag(std::string_view key, bool otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return bad(key, *value, "true or false");
  return value->get<bool>();
}

Result<int64_t> ProcessorKeys::number(std::string_view key, const json& value, int64_t most) const {
  if (value.is_number_integer()) {
    const auto n = value.get<int64_t>();
    if (n >= 1 && n <= most) return n;
  }
  return bad(key, value, fmt::format("an integer of 1 to {}", most));
}

Result<int64_t> ProcessorKeys::integer(std::string_view key, int64_t otherwise, int64_t most) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  return number(key, *value, most);
}

Result<double> ProcessorKeys::positive(std::string_view key, double otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  const double x = value->is_number() ? value->get<double>() : 0.0;
  if (!(x >= 1e-6 && x <= 1e6)) return bad(key, *value, "a number of 1e-6 to 1e6");
  return x;
}

// A deviation of 0 is refused by the reader of normalisations.
Result<std::array<double, 3>> ProcessorKeys::triple(std::string_view key,
                                                    const std::array<double, 3>& otherwise) const {
  const json* value = find(key);
  if (value == nullptr) return otherwise;
  std::array<double, 3> numbers{};
  const bool is_list = value->is_array() && value->size() == numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const json* element = value->is_number() ? value : is_list ? &(*value)[i] : nullptr;
    if (element == nullptr || !element->is_number()) return bad(key, *value, "three numbers");
    numbers[i] = element->get<double>();
    if (!(std::abs(numbers[i]) <= 1e6)) return bad(key, *value, "three numbers of at most 1e6");
  }
  return numbers;
}

Result<Filter> ProcessorKeys::filter(Filter otherwise) const {
  constexpr std::array kFilters = {Filter::kNearest, Filter::kLanczos3, Filter::kBilinear, Filter::kBicubic};
  const json* value = find("resample");
  if (value == nullptr) return otherwise;
  const int64_t n = value->is_number_integer() ? value->get<int64_t>() : -1;
  if (n < 0 || n >= static_cast<int64_t>(kFilters.size())) {
    return bad("resample", *value, "0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)");
  }
  return kFilters[static_cast<size_t>(n)];
}

Result<std::optional<ProcessorKeys::Sides>> ProcessorKeys::sides(std::string_view key, bool is_square) const {
  const json* value = find(key);
  if (value == nullptr) return std::optional<Sides>();
  Sides sides;
  if (value->is_number()) {
    CANDOR_ASSIGN(const int64_t side, number(key, *value, kMostSide));
    const auto length = static_cast<int32_t>(side);
    if (is_square) sides.size = Size{.height = length, .width = length};
    if (!is_square) sides.shortest_edge = side;
    return std::optional(sides);
  }
  if (!value->is_object()) return bad(key, *value, "an integer or an object");
  Size size;
  for (const auto& [name, element] : value->items()) {
    if (element.is_null()) continue;
    const bool is_side = name == "height" || name == "width";
    CANDOR_ASSIGN(const int64_t n, number(key, element, is_side ? kMostSide : kMostPixelsNamed));
    if (name == "height") {
      size.height = static_cast<int32_t>(n);
    } else if (name == "width") {
      size.width = static_cast<int32_t>(n);
    } else if (name == "shortest_edge") {
      sides.shortest_edge = n;
    } else if (name == "longest_edge") {
      sides.longest_edge = n;
    } else {
      return bad(key, *value, "height and width, or shortest_edge and longest_edge");
    }
  }
  if ((size.height > 0) != (size.width > 0)) return bad(key, *value, "height and width");
  if (size.height > 0) sides.size = size;
  return std::optional(sides);
}

Result<std::vector<Size>> ProcessorKeys::sizes(std::string_view key) const {
  constexpr size_t kMostSizes = 256;
  std::vector<Size> found;
  const json* value = find(key);
  if (value == nullptr) return found;
  if (!value->is_array() || value->empty() || value->size() > kMostSizes) {
    return bad(key, *value, "a list of 1 to 256 pairs of height and width");
  }
  for (const json& pair : *value) {
    if (!pair.is_array() || pair.size() != 2) return bad(key, pair, "height and width");
    CANDOR_ASSIGN(const int64_t height, number(key, pair[0], kMostSide));
    CANDOR_ASSIGN(const int64_t width, number(key, pair[1], kMostSide));
    found.push_back({.height = static_cast<int32_t>(height), .width = static_cast<int32_t>(width)});
  }
  return found;
}

}  // namespace candor::image
