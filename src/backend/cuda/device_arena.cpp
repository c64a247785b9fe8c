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
  n_taken_ = 0;
  if (pieces_.size() < 2) return;
  size_t total = 0;
  for (const DeviceMemory& piece : pieces_) total += piece.size();
  pieces_.clear();
  auto whole = DeviceMemory::make(device_, total);
  if (whole) pieces_.push_back(std::move(*whole));
}

std::byte* StepTables::take(size_t n_bytes) {
  const size_t n = round_up(std::max<size_t>(n_bytes, 1), kAlignment);
  if (pieces_.empty() || pieces_.back().size() - n_taken_ < n) {
    auto piece = DeviceMemory::make(device_, std::max(n, kLeastPiece));
    if (!piece) {
      status_ = std::move(piece).error();
      return nullptr;
    }
    pieces_.push_back(std::move(*piece));
    n_taken_ = 0;
  }
  std::byte* at = pieces_.back().data() + n_taken_;
  n_taken_ += n;
  return at;
}

}  // namespace candor::backend::cuda
