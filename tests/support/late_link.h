#pragma once
// Ranks of one process that speak as ranks of several hosts do, over a link that is made up: what a carrier asks of MPI
// is answered by queues, and a message comes when a link of that latency and rate would have brought it. A link may be
// cut.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "comm/mpi/carrier.h"
#include "comm/shm/exchange_sign.h"
#include "comm/shm/shm_communicator.h"

namespace candor::testing {

struct LinkSpeed {
  std::chrono::nanoseconds latency{0};
  double bytes_per_s = 1e12;  // out of each rank
};

class LateLink {
 public:
  using Time = std::chrono::steady_clock::time_point;
  LateLink(int32_t n_ranks, LinkSpeed speed);

  int32_t n_ranks() const { return n_ranks_; }
  // Nothing comes through from now on.
  void cut() { is_cut_.store(true); }
  bool is_cut() const { return is_cut_.load(); }

  void send(int32_t from, int32_t to, int tag, std::span<const std::byte> bytes);
  // The oldest message that has come; how many bytes of it, or -1.
  int64_t receive(int32_t from, int32_t to, int tag, std::span<std::byte> bytes);
  // For the carrier of that rank, whose thread says who it is.
  static const candor_mpi_calls& calls();
  void speak_as(int32_t rank);

 private:
  struct Message {
    Time due;
    std::vector<std::byte> bytes;
  };
  struct Way {
    std::mutex mutex;
    std::deque<Message> messages;
  };
  Way& way(int32_t from, int32_t to, int tag);

  int32_t n_ranks_;
  LinkSpeed speed_;
  std::atomic<bool> is_cut_{false};
  std::vector<std::unique_ptr<Way>> ways_;
  std::mutex mutex_;
  std::vector<Time> free_at_;  // of each rank's way out; guarded by mutex_
};

// A rank of a host of its own: its memory, its communicator, and the thread that carries its bytes.
class FarRank {
 public:
  FarRank(std::shared_ptr<LateLink> link, int32_t rank, comm::WatchOptions watch = {}, bool spin = false);
  ~FarRank();
  comm::ShmCommunicator& comm() { return *comm_; }
  // The carrier's own end.
  Result<void> leave();

 private:
  std::shared_ptr<LateLink> link_;
  std::shared_ptr<comm::Segment> segment_;
  comm::ExchangeSign sign_;
  std::unique_ptr<comm::ShmCommunicator> comm_;
  std::unique_ptr<comm::Carrier> carrier_;
  std::atomic<bool> is_over_{false};
  Result<void> carried_{};
  std::thread thread_;
};

}  // namespace candor::testing
