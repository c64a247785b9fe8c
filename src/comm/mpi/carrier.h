#pragma once
// Moves a rank's bytes to ranks of other hosts and back: it sends by MPI what lies in the rank's rings for them, and
// puts what it receives into their rings for the rank, so that the rank's communicator knows nothing of MPI. It also
// carries what ranks say about themselves (that they live, or why they failed).
//
// One thread makes every MPI call, and no other thread waits for it without a limit: MPI may hang when a peer is lost.

#include <candor_mpi.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "comm/shm/exchange_sign.h"
#include "comm/shm/segment.h"

namespace candor::comm {

struct CarrierOptions {
  int32_t rank = 0;
  std::vector<int32_t> far{};  // ranks that bytes are carried to
  bool spin = true;            // this thread has a processor of its own
};

class Carrier {
 public:
  // mpi, segment and sign are borrowed.
  Carrier(const candor_mpi_calls& mpi, Segment& segment, ExchangeSign& sign, const CarrierOptions& options);
  // Until it is over and all bytes are out; or MPI's error.
  Result<void> run(const std::atomic<bool>& is_over);
  void set_spin(bool spin) { spin_.store(spin, std::memory_order_relaxed); }

 private:
  static constexpr size_t kPieceBytes = size_t{32} << 10;  // goes at once, without asking the receiver, in any MPI
  static constexpr size_t kPieces = 4;                     // on their way at the same time, each way

  // What a rank says of itself.
  struct Word {
    uint64_t beats = 0;
    RankState state = RankState::kComing;
    std::array<char, 512> message{};
    ErrorKind kind = ErrorKind::kInternal;
  };
  struct Piece {
    candor_mpi_request request{};
    uint64_t end = 0;  // of the ring's bytes
  };
  struct Box {
    candor_mpi_request request{};
    std::vector<std::byte> bytes;  // [kPieceBytes]
    size_t n_bytes = 0;
    size_t n_taken = 0;
    bool is_full = false;
  };
  // Both ways with one rank.
  struct Route {
    int32_t peer = 0;
    std::array<Piece, kPieces> pieces{};
    size_t first_piece = 0;
    size_t n_pieces = 0;
    uint64_t n_begun = 0;  // bytes of the ring
    std::array<Box, kPieces> boxes{};
    size_t first_box = 0;
    Word sent{}, received{};
    candor_mpi_request send_request{}, receive_request{};
    bool is_sending = false;
  };

  Result<void> post(Route& route, Box& box);
  Result<void> listen(Route& route);
  Result<void> carry_out(Route& route);
  Result<void> free_sent(Route& route);
  Result<void> carry_in(Route& route);
  Result<void> say(Route& route, bool is_time);
  Result<void> hear(Route& route);
  Result<bool> is_done(candor_mpi_request& request, size_t& n_received);
  bool put(Route& route, Box& box);
  bool is_all_out(const Route& route);
  void rest(int64_t n_idle);

  const candor_mpi_calls& mpi_;
  Segment& segment_;
  ExchangeSign& sign_;
  int32_t rank_;
  std::atomic<bool> spin_;
  std::vector<std::unique_ptr<Route>> routes_;
  bool has_moved_ = false;
};

}  // namespace candor::comm
