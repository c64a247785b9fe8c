#pragma once
// Adapters: small matrices (LoRA) that change a model's own, for the requests that ask for them. An engine holds any
// number of them; a request uses some, each with a scale. Plain data.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace candor {

inline constexpr std::size_t kMaxAdapters = 1024;       // of an engine
inline constexpr std::size_t kMaxRequestAdapters = 16;  // that a request uses at once
inline constexpr std::size_t kMaxAdapterNameBytes = 128;
inline constexpr double kMaxAdapterScale = 1000.0;

// What is loaded. name: letters, digits and "._-/", unique in the engine.
struct AdapterSource {
  std::string name{};
  std::filesystem::path path{};  // PEFT's folder, a GGUF file, or a checkpoint that has a task of this name
  double scale = 1.0;            // of what it adds, for every request; [-kMaxAdapterScale, kMaxAdapterScale]
};

// What a request uses: so much of what the adapter adds, times the source's scale.
struct RequestAdapter {
  std::string name{};
  double scale = 1.0;  // [-kMaxAdapterScale, kMaxAdapterScale]; 0: nothing is added
};

struct AdapterInfo {
  std::string name{};
  std::int64_t number = 0;  // in the order of loading, from 0
  std::filesystem::path path{};
  std::string format{};  // "PEFT", "GGUF v3", "task"
  std::string prompt{};  // that stands before each text, where its files say one
  double scale = 1.0;
  std::int64_t rank = 0;        // the largest
  std::int64_t n_matrices = 0;  // of the model's that it changes; of experts each
  std::uint64_t memory_bytes = 0;
  std::uint64_t hash = 0;  // of its content
};

}  // namespace candor
