#include "backend/cuda/device_arena.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace candor::backend::cuda {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kLeastPiece = size_t{1} << 20;

}  // namespace

Result<DeviceArena> DeviceArena::make(const ArenaLayout& layout, Device& device) {
  DeviceArena arena;
  CANDOR_ASSIGN(arena.places_, ArenaPlaces::make(layout));
  CANDOR_ASSIGN(arena.memory_, DeviceMemory::make(device, arena.places_.n_bytes()));
  return arena;
}

Result<void> DeviceRoom::reserve(size_t n_bytes) {
  if (n_bytes <= memory_.size()) return {};
  memory_ = {};
  CANDOR_ASSIGN(memory_, DeviceMemory::make(device_, n_bytes));
  return {};
}

// Of several pieces one as large as all of them remains: steps that are alike allocate nothing.
void StepTables::begin() {
  n_taken_ = n_sent_ = 0;
  if (pieces_.size() < 2) return;
  size_t total = 0;
  for (const DeviceMemory& piece : pieces_) total += piece.size();
  pieces_.clear();
  auto whole = DeviceMemory::make(device_, total);
  if (!whole) return;
  pieces_.push_back(std::move(*whole));
  host_.resize(total);
}

void StepTables::send() {
  if (n_taken_ == n_sent_) return;
  device_.copy_in(pieces_.back().data() + n_sent_, host_.data() + n_sent_, n_taken_ - n_sent_);
  n_sent_ = n_taken_;
}

size_t StepTables::take(size_t n_bytes) {
  const size_t n = round_up(std::max<size_t>(n_bytes, 1), kAlignment);
  if (pieces_.empty() || pieces_.back().size() - n_taken_ < n) {
    send();
    auto piece = DeviceMemory::make(device_, std::max(n, kLeastPiece));
    if (!piece) {
      status_ = std::move(piece).error();
      return 0;
    }
    pieces_.push_back(std::move(*piece));
    host_.resize(pieces_.back().size());
    n_taken_ = n_sent_ = 0;
  }
  return std::exchange(n_taken_, n_taken_ + n);
}

}  // namespace candor::backend::cuda
