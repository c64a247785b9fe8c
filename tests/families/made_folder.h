#pragma once
// A checkpoint whose weights are computed from their names, as made_weights.py has them, in BF16 or rounded to it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace candor::testing {

struct StoredTensor {
  std::string name;
  std::string dtype;  // "BF16", "F32"
  nlohmann::json shape;
  std::string bytes;
};

inline double made_uniform(uint64_t at) {
  uint64_t x = at + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  return static_cast<double>(x >> 40) / 8388608.0 - 1.0;
}

inline uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((uint64_t{bits} + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

inline int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return count;
}

// name: what the numbers are computed from.
inline std::string made_bytes(const std::string& name, const std::string& dtype, int64_t count, double centre,
                              double spread) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const double value = centre + spread * made_uniform(hash + static_cast<uint64_t>(i));
    const uint16_t bits = to_bf16(static_cast<float>(value));
    if (dtype == "F32") bytes.append(2, '\0');
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return bytes;
}

// A case's, by its name and shape alone.
inline std::string made_weight(const std::string& name, const std::vector<int64_t>& shape) {
  const int64_t count = count_of(shape);
  const bool is_vector = count == *std::ranges::max_element(shape);
  const bool is_gain = is_vector && (name.ends_with("weight") || name.ends_with("scale"));
  bool is_table = false;
  for (const char* part : {"embed", "wte", "wpe"}) is_table |= name.find(part) != std::string::npos;
  const double matrix = is_table ? 0.4375 : 2.25 / std::sqrt(static_cast<double>(shape.back()));
  // Scores that are not scaled stay small.
  const bool is_small = name.ends_with("q_norm.weight") || name.ends_with("k_norm.weight");
  const double centre = !is_gain ? 0.0 : is_small ? 0.5 : 1.0;
  const double spread = !is_vector ? matrix : is_gain && is_small ? 0.1875 : 0.375;
  return made_bytes(name, "BF16", count, centre, spread);
}

inline void write_safetensors(const std::filesystem::path& path, const std::vector<StoredTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::ofstream file(path, std::ios::binary);
  const uint64_t n = text.size();
  file.write(reinterpret_cast<const char*>(&n), sizeof n);
  file << text;
  for (const StoredTensor& tensor : tensors) file << tensor.bytes;
}

// config.json and model.safetensors. tensors: name -> shape.
inline void write_made_folder(const std::filesystem::path& folder, const nlohmann::json& config,
                              const nlohmann::json& tensors) {
  std::ofstream(folder / "config.json") << config.dump();
  std::vector<StoredTensor> stored;
  for (const auto& [name, shape] : tensors.items()) {
    stored.push_back({name, "BF16", shape, made_weight(name, shape.get<std::vector<int64_t>>())});
  }
  write_safetensors(folder / "model.safetensors", stored);
}

}  // namespace candor::testing
