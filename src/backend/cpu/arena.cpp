#include "backend/cpu/arena.h"

#include "base/checked.h"

namespace candor::backend::cpu {
namespace {

// The pieces of threads start on a pair of cache lines, so that neighbours never share one.
constexpr size_t kAlignment = 128;

}  // namespace

Result<Arena> Arena::make(const ArenaLayout& layout) {
  Arena arena;
  CANDOR_ASSIGN(arena.places_, ArenaPlaces::make(layout));
  CANDOR_ASSIGN(arena.memory_, platform::HugeBuffer::allocate(arena.places_.n_bytes(), "a step's activations"));
  return arena;
}

Result<void> ThreadScratch::reserve(size_t bytes_per_thread) {
  bytes_per_thread = round_up(bytes_per_thread, kAlignment);
  if (bytes_per_thread <= bytes_per_thread_) return {};
  CANDOR_ASSIGN(memory_, platform::HugeBuffer::allocate(bytes_per_thread * static_cast<size_t>(n_threads_),
                                                        "the working memory of compute threads"));
  bytes_per_thread_ = bytes_per_thread;
  return {};
}

}  // namespace candor::backend::cpu
