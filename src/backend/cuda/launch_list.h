#pragma once
// Launches in order, kept until a device runs them all (Device::run_all). One thread.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "backend/cuda/launch.h"

namespace candor::backend::cuda {

class LaunchList final : public Launcher {
 public:
  struct Entry {
    const char* kernel = nullptr;
    Launch launch{};
    size_t args_at = 0;
    size_t args_bytes = 0;
  };

  void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) override {
    const size_t at = (bytes_.size() + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment;
    bytes_.resize(at + n_bytes);
    std::memcpy(bytes_.data() + at, args, n_bytes);
    entries_.push_back({kernel, launch, at, n_bytes});
  }
  // Keeps its memory. part: of a step, from 0; lists of one part are likely to have equal arguments in every step.
  void begin(int32_t part) {
    entries_.clear();
    bytes_.clear();
    part_ = part;
  }

  std::span<const Entry> entries() const { return entries_; }
  bool is_empty() const { return entries_.empty(); }
  int32_t part() const { return part_; }
  const std::byte* args(const Entry& entry) const { return bytes_.data() + entry.args_at; }

 private:
  std::vector<Entry> entries_;
  std::vector<std::byte> bytes_;
  int32_t part_ = 0;
};

}  // namespace candor::backend::cuda
