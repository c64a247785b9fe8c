#pragma once
// Watches whether a rank's peers live, on a thread that also signals every 100 ms that its own rank does. A peer is
// lost when its process has ended, when it said that it failed or left, or when it has not signalled for
// WatchOptions::silence. A computation may take any time: only a process that is stopped, or that the system does not
// run, stops signalling.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/shm/segment.h"

namespace candor::comm {

struct WatchOptions {
  std::chrono::milliseconds silence{6000};  // from which on a peer counts as stopped
};

class PeerWatch {
 public:
  PeerWatch(std::shared_ptr<Segment> segment, int32_t rank, WatchOptions options);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  // Any thread.
  bool is_sound() const { return !has_fault_.load(std::memory_order_acquire); }
  Result<void> health() const;
  // The first fault counts.
  void report(Error fault);
  // Peers may end from now on.
  void stop();

 private:
  struct Peer {
    int process = -1;  // a descriptor of it, once it is known
    uint64_t beats = 0;
    int64_t n_silent = 0;  // looks since it last spoke
  };
  void run();
  void look_at_all();
  std::optional<Error> fault_of(int32_t rank, Peer& peer);

  std::shared_ptr<Segment> segment_;
  int32_t rank_;
  int64_t most_silent_;  // looks
  std::vector<Peer> peers_;

  std::atomic<bool> has_fault_{false};
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool is_stopping_ = false;     // guarded by mutex_
  std::optional<Error> fault_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace candor::comm
