#pragma once
// The shared memory of the ranks of one host: an entry for each rank (its state, heartbeat and error) and a ring buffer
// from each rank to each other. Rank 0 creates it; the others attach to its file descriptor. The system frees it when
// the last of them ends, however it ended.
//
// Ranks of other hosts have entries and rings too. The thread that carries bytes to them (mpi/carrier.h) writes their
// entries, which belong to this process alone.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::comm {

inline constexpr int32_t kMaxRanks = 64;
inline constexpr size_t kRingBytes = size_t{256} << 10;  // stays in a second-level cache

// Bytes from one writer to one reader. Both counts only grow; the bytes between them are on their way.
struct Ring {
  alignas(64) std::atomic<uint64_t> n_written{0};
  alignas(64) std::atomic<uint64_t> n_read{0};
  alignas(64) std::array<std::byte, kRingBytes> bytes;
};

enum class RankState : uint32_t { kComing, kHere, kFailed, kLeft };

// Written by its own rank, except the bell: a peer that has something for the rank rings it while the rank sleeps.
struct RankEntry {
  alignas(64) std::atomic<uint32_t> bell{0};
  std::atomic<uint32_t> is_sleeping{0};
  alignas(64) std::atomic<RankState> state{RankState::kComing};
  std::atomic<int32_t> pid{0};
  std::atomic<uint64_t> beats{0};
  std::array<char, 512> message{};  // why it failed; written before the state says so
  ErrorKind kind = ErrorKind::kInternal;  // too
  std::array<char, 64> host{};      // of a rank on another host, which has no process on this one
};

// After something was done that its rank may wait for. Either this one sees that the rank sleeps, or the rank sees what
// was done before it sleeps.
void ring_bell(RankEntry& entry) noexcept;

class Segment {
 public:
  // With a descriptor that programs started from here may inherit.
  static Result<std::shared_ptr<Segment>> make(int32_t n_ranks);
  // Takes the descriptor. Refuses what is no such memory, or that of another version.
  static Result<std::shared_ptr<Segment>> attach(int descriptor);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // A rank of another host: what is known of it is this process's alone. Before any thread uses the entry.
  void keep_apart(int32_t rank, std::string_view host);
  bool is_apart(int32_t rank) const { return apart_[static_cast<size_t>(rank)] != nullptr; }

  int descriptor() const { return descriptor_; }
  int32_t n_ranks() const { return n_ranks_; }
  RankEntry& entry(int32_t rank);
  // REQUIRES: two ranks.
  Ring& ring(int32_t from, int32_t to);

 private:
  Segment(int descriptor, std::byte* memory, size_t n_bytes, int32_t n_ranks)
      : descriptor_(descriptor),
        memory_(memory),
        n_bytes_(n_bytes),
        n_ranks_(n_ranks),
        apart_(static_cast<size_t>(n_ranks)) {}

  int descriptor_;
  std::byte* memory_;
  size_t n_bytes_;
  int32_t n_ranks_;
  std::vector<std::unique_ptr<RankEntry>> apart_;  // [n_ranks]; nullptr for ranks of this host
};

// What the ranks of one model must have in common to understand each other.
std::string_view protocol_version();

}  // namespace candor::comm
