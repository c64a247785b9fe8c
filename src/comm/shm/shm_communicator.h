#pragma once
// The Communicator between ranks of one host: a rank writes bytes into rings of shared memory (segment.h), and the
// reader copies them to their destination. A thread that waits spins, then yields the processor, then sleeps until a
// peer wakes it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/shm/exchange_sign.h"
#include "comm/shm/peer_watch.h"
#include "comm/shm/segment.h"

namespace candor::comm {

struct ShmOptions {
  WatchOptions watch{};
  bool spin = true;  // every rank's threads have processors of their own
  ExchangeSign* sign = nullptr;  // watched by the thread that carries bytes to other hosts; nullptr: there is none
};

// Pieces of equal size at equal distances, and how much of them is done.
class ByteRows {
 public:
  ByteRows() = default;
  ByteRows(std::byte* first, size_t row_bytes, size_t stride_bytes, size_t n_rows);
  bool is_done() const { return done_ == total_; }
  size_t total() const { return total_; }
  // What comes next without a gap; empty when all is done.
  std::span<std::byte> next() const;
  void advance(size_t n_bytes) { done_ += n_bytes; }

 private:
  std::byte* first_ = nullptr;
  size_t row_bytes_ = 0;
  size_t stride_bytes_ = 0;
  size_t total_ = 0;
  size_t done_ = 0;
};

class ShmCommunicator final : public Communicator {
 public:
  // Marks this rank as present.
  ShmCommunicator(std::shared_ptr<Segment> segment, int32_t rank, ShmOptions options);
  ~ShmCommunicator() override;

  int32_t rank() const override { return rank_; }
  int32_t size() const override { return segment_->n_ranks(); }
  Result<void> gather(const RowSlices& slices, Receivers receivers, uint64_t tag) override;
  Result<void> broadcast(std::vector<std::byte>& message) override;
  Result<void> barrier() override;
  void say_failed(const Error& why) override;
  Result<void> health() const override { return watch_.health(); }
  Traffic traffic() const override { return traffic_; }

  // Waits until every rank is present; the error names one that is not.
  Result<void> wait_for_all(std::chrono::milliseconds patience);
  void set_spin(bool spin) { options_.spin = spin; }
  // Everything that would wait returns this from now on.
  void lose(const Error& fault) { watch_.report(fault); }
  // Peers may end from now on.
  void expect_end() { watch_.stop(); }

 private:
  // Goes before every transfer.
  struct Header {
    uint64_t tag = 0;
    uint64_t n_bytes = 0;
  };
  // Both ways with one peer. A way without a transfer has none of both.
  struct Line {
    Header head_out{}, head_in{}, expected{};
    ByteRows out_head, out, in_head, in;
    bool is_done() const { return out_head.is_done() && out.is_done() && in_head.is_done() && in.is_done(); }
  };

  Line& line(int32_t peer) { return lines_[static_cast<size_t>(peer)]; }
  void clear_lines();
  void send(int32_t peer, uint64_t tag, const ByteRows& rows);
  void receive(int32_t peer, uint64_t tag, const ByteRows& rows);
  // Until every line is done.
  Result<void> run_lines();
  Result<void> move_until_done();
  bool push(int32_t peer, ByteRows& rows);
  bool pull(int32_t peer, ByteRows& rows);
  bool move(int32_t peer);
  bool move_all(bool& is_done);
  void wait(int64_t n_idle);
  // Whether the carrier has taken all bytes for ranks of other hosts.
  bool is_carried();
  void give_way();

  std::shared_ptr<Segment> segment_;
  int32_t rank_;
  ShmOptions options_;
  PeerWatch watch_;
  std::vector<Line> lines_;  // [size]
  Traffic traffic_;
  bool is_astray_ = false;  // a peer sent something else than what was expected
};

}  // namespace candor::comm
