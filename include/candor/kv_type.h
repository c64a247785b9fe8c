#pragma once
// The numbers that keys and values are stored in. An answer depends on them, as on the model.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace candor {

// kQ4: 4 bits behind a Hadamard rotation of each head (docs/numerics.md, "Attention").
enum class KvType : std::uint8_t { kF32, kBf16, kQ8_0, kQ4 };

inline constexpr std::string_view kKvTypeNames[] = {"f32", "bf16", "q8_0", "q4"};  // by KvType

constexpr std::string_view name_of(KvType type) {
  return kKvTypeNames[static_cast<std::size_t>(type)];
}

// Absent where no type has the name.
constexpr std::optional<KvType> find_kv_type(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kKvTypeNames); ++i) {
    if (kKvTypeNames[i] == name) return static_cast<KvType>(i);
  }
  return std::nullopt;
}

}  // namespace candor
