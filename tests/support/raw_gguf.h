#pragma once
// GGUF bytes written field by field, so that tests can make files that the writer refuses to make. A RawGguf starts as
// a valid file; tests bend its fields.

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor::testing {

template <class T>
std::string le_bytes(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return le_bytes<uint64_t>(text.size()) + std::string(text);
}

// A metadata entry: key, type number and the value's bytes.
inline std::string gguf_entry(std::string_view key, uint32_t type, std::string_view value) {
  return gguf_text(key) + le_bytes(type) + std::string(value);
}

inline std::string gguf_array(uint32_t element_type, uint64_t count, std::string_view elements) {
  return le_bytes(element_type) + le_bytes(count) + std::string(elements);
}

struct RawTensor {
  std::string name;
  std::vector<uint64_t> dims;  // innermost first
  uint32_t type = 0;
  uint64_t offset = 0;

  std::string bytes() const {
    std::string out = gguf_text(name) + le_bytes(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) out += le_bytes(dim);
    return out + le_bytes(type) + le_bytes(offset);
  }
};

struct RawGguf {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> n_tensors;  // what the header says, where it lies
  std::optional<uint64_t> n_entries;
  std::vector<std::string> entries;
  std::vector<RawTensor> tensors;
  size_t alignment = 32;  // of the data's start
  size_t data_bytes = 0;

  std::string header() const {
    std::string out = magic + le_bytes(version) + le_bytes<uint64_t>(n_tensors.value_or(tensors.size())) +
                      le_bytes<uint64_t>(n_entries.value_or(entries.size()));
    for (const std::string& entry : entries) out += entry;
    for (const RawTensor& tensor : tensors) out += tensor.bytes();
    return out;
  }

  std::string bytes() const {
    std::string out = header();
    out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
    for (size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i * 7 + 1);
    return out;
  }
};

}  // namespace candor::testing
