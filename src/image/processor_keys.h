#pragma once
// The keys of a processor's configuration, read with their types and bounds. A key that is null is absent, as in
// transformers. Used by processor_config.cpp alone.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/image.h"
#include "image/resize.h"

namespace candor::image {

class ProcessorKeys {
 public:
  // REQUIRES: an object, which outlives this.
  explicit ProcessorKeys(const nlohmann::json& object) : object_(object) {}

  const nlohmann::json* find(std::string_view key) const;
  // The string of a key, empty where it is absent or none.
  std::string word(std::string_view key) const;
  Result<bool> flag(std::string_view key, bool otherwise) const;
  Result<int64_t> integer(std::string_view key, int64_t otherwise, int64_t most) const;  // at least 1
  Result<double> positive(std::string_view key, double otherwise) const;
  Result<std::array<double, 3>> triple(std::string_view key, const std::array<double, 3>& otherwise) const;
  Result<Filter> filter(Filter otherwise) const;

  // "size" and the like: {"height", "width"}, {"shortest_edge", "longest_edge"}, or one integer.
  struct Sides {
    std::optional<Size> size{};
    int64_t shortest_edge = 0;
    int64_t longest_edge = 0;
  };
  // Absent where the key is. is_square: of one integer, else it is the shortest edge.
  Result<std::optional<Sides>> sides(std::string_view key, bool is_square) const;

  // Pairs of height and width; none where the key is absent.
  Result<std::vector<Size>> sizes(std::string_view key) const;

  Error bad(std::string_view key, const nlohmann::json& value, std::string_view expected) const;
  Error unsupported(std::string_view key, std::string_view why) const;

 private:
  Result<int64_t> number(std::string_view key, const nlohmann::json& value, int64_t most) const;

  const nlohmann::json& object_;
};

}  // namespace candor::image
