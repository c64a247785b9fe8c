#include "comm/shm/peer_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "platform/futex.h"

namespace candor::comm {
namespace {

constexpr std::chrono::milliseconds kLook{100};

std::string name_of(int32_t rank, const RankEntry& entry) {
  if (entry.host[0] != '\0') return "rank " + std::to_string(rank) + " (host " + entry.host.data() + ")";
  return "rank " + std::to_string(rank) + " (process " + std::to_string(entry.pid.load()) + ")";
}

// -1 where there is none to watch: a rank of the same process, or of a system that has no such descriptors.
int watch_process(int32_t pid, bool& is_gone) {
  if (pid <= 0 || pid == ::getpid()) return -1;
  const long descriptor = ::syscall(SYS_pidfd_open, pid, 0);
  is_gone = descriptor < 0 && errno == ESRCH;
  return static_cast<int>(descriptor);
}

bool has_ended(int process) {
  pollfd descriptor{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&descriptor, 1, 0) > 0;
}

}  // namespace

PeerWatch::PeerWatch(std::shared_ptr<Segment> segment, int32_t rank, WatchOptions options)
    : segment_(std::move(segment)),
      rank_(rank),
      most_silent_(std::max<int64_t>(2, options.silence / kLook)),
      peers_(static_cast<size_t>(segment_->n_ranks())),
      thread_([this] { run(); }) {}

PeerWatch::~PeerWatch() {
  stop();
  for (const Peer& peer : peers_) {
    if (peer.process >= 0) ::close(peer.process);
  }
}

void PeerWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<void> PeerWatch::health() const {
  if (is_sound()) return {};
  const std::lock_guard lock(mutex_);
  return *fault_;
}

void PeerWatch::report(Error fault) {
  {
    const std::lock_guard lock(mutex_);
    if (fault_) return;
    fault_ = std::move(fault);
  }
  has_fault_.store(true, std::memory_order_release);
  std::atomic<uint32_t>& bell = segment_->entry(rank_).bell;
  bell.fetch_add(1);
  platform::futex_wake_shared(bell);
}

void PeerWatch::run() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    lock.unlock();
    look_at_all();
    lock.lock();
    if (!is_stopping_) stopped_.wait_for(lock, kLook);
  }
}

void PeerWatch::look_at_all() {
  segment_->entry(rank_).beats.fetch_add(1, std::memory_order_relaxed);
  for (int32_t rank = 0; rank < segment_->n_ranks() && is_sound(); ++rank) {
    if (rank == rank_) continue;
    if (auto fault = fault_of(rank, peers_[static_cast<size_t>(rank)])) report(std::move(*fault));
  }
}

std::optional<Error> PeerWatch::fault_of(int32_t rank, Peer& peer) {
  const RankEntry& entry = segment_->entry(rank);
  const RankState state = entry.state.load(std::memory_order_acquire);
  if (state == RankState::kFailed) {
    std::string why = "rank " + std::to_string(rank) + ": " + entry.message.data();
    if (is_fault_of_input(entry.kind)) return fail(entry.kind, std::move(why));
    return lost_rank(std::move(why));
  }
  if (state == RankState::kLeft) return lost_rank(name_of(rank, entry) + " has left");
  bool is_gone = false;
  if (peer.process < 0) peer.process = watch_process(entry.pid.load(), is_gone);
  if (is_gone || (peer.process >= 0 && has_ended(peer.process))) {
    // It may have said why just before.
    if (entry.state.load(std::memory_order_acquire) == RankState::kFailed) return fault_of(rank, peer);
    return lost_rank(name_of(rank, entry) + " has ended");
  }
  if (state == RankState::kComing) return std::nullopt;
  const uint64_t beats = entry.beats.load(std::memory_order_relaxed);
  peer.n_silent = beats == peer.beats ? peer.n_silent + 1 : 0;
  peer.beats = beats;
  if (peer.n_silent < most_silent_) return std::nullopt;
  const auto seconds = std::chrono::duration<double>(peer.n_silent * kLook).count();
  return lost_rank(name_of(rank, entry) + " has not answered for " + std::to_string(std::lround(seconds)) +
                                  (entry.host[0] != '\0' ? " s: it is stopped, or the link to it is cut"
                                                         : " s: it is stopped, or the machine does not run it"));
}

}  // namespace candor::comm
