#pragma once
// The memory that a step needs on the device beside weights and K/V: activations in slots, encoded activations, and
// what the host computes for a step (positions, rotations, lists of experts), which is put in one piece after another.
// Sized before the first step; the last grows where a step wants more.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "backend/arena_places.h"
#include "backend/backend.h"
#include "backend/cuda/device.h"
#include "backend/op_terms.h"
#include "base/error.h"

namespace candor::backend::cuda {

class DeviceArena {
 public:
  static Result<DeviceArena> make(const ArenaLayout& layout, Device& device);
  DeviceArena() = default;

  int32_t max_rows() const { return places_.max_rows(); }
  // [n_cols] of row i; rows are contiguous. REQUIRES: the activation fits its slot.
  float* row(const Activation& x, int32_t i) const {
    return reinterpret_cast<float*>(memory_.data() + places_.row_at(x, i));
  }
  float* data(const Activation& x) const { return row(x, 0); }

 private:
  ArenaPlaces places_;
  DeviceMemory memory_;
};

// Memory that grows, never shrinks, and loses its content when it grows.
class DeviceRoom {
 public:
  explicit DeviceRoom(Device& device) : device_(device) {}
  Result<void> reserve(size_t n_bytes);
  std::byte* data() const { return memory_.data(); }
  size_t size() const { return memory_.size(); }

 private:
  Device& device_;
  DeviceMemory memory_;
};

// Copies of what the host has computed, valid until the next begin(). They lie together on the host until send() brings
// all of them to the device in one copy: whatever reads them is launched after that.
class StepTables {
 public:
  explicit StepTables(Device& device) : device_(device) {}
  // What is to be launched may no longer need the tables of before.
  void begin();

  // Of the device. nullptr where there is no memory: status().
  template <class T>
  T* put(std::span<const T> values) {
    const size_t at = take(values.size_bytes());
    if (!status_) return nullptr;
    if (!values.empty()) std::memcpy(host_.data() + at, values.data(), values.size_bytes());
    return reinterpret_cast<T*>(pieces_.back().data() + at);
  }
  void send();
  const Result<void>& status() const { return status_; }

 private:
  // Where in the last piece.
  size_t take(size_t n_bytes);

  Device& device_;
  std::vector<DeviceMemory> pieces_;  // the last one is taken from
  std::vector<std::byte> host_;       // what it will hold
  size_t n_taken_ = 0;
  size_t n_sent_ = 0;
  Result<void> status_{};
};

}  // namespace candor::backend::cuda
