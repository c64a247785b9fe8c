#include "comm/mpi/carrier.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "comm/mpi/mpi_library.h"
#include "platform/futex.h"

namespace candor::comm {
namespace {

using std::chrono::microseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kBytesTag = 1;
constexpr int kWordTag = 2;
constexpr std::chrono::milliseconds kBeat{100};
constexpr std::chrono::milliseconds kHearing{2};  // between looks for a word: each costs the system's time
constexpr int64_t kCarrierSpins = 20'000;  // some milliseconds: steps follow each other faster
constexpr int64_t kCarrierYields = 400;
constexpr unsigned long kTimerSlackNs = 1000;  // how late naps may end
constexpr int64_t kShortNaps = 400;
constexpr int64_t kNapNs = 10'000'000;  // between exchanges; a beat is late by this much

}  // namespace

Carrier::Carrier(const candor_mpi_calls& mpi, Segment& segment, ExchangeSign& sign, const CarrierOptions& options)
    : mpi_(mpi), segment_(segment), sign_(sign), rank_(options.rank), spin_(options.spin) {
  for (const int32_t peer : options.far) {
    auto route = std::make_unique<Route>();
    route->peer = peer;
    for (Box& box : route->boxes) box.bytes.resize(kPieceBytes);
    routes_.push_back(std::move(route));
  }
}

Result<void> Carrier::run(const std::atomic<bool>& is_over) {
  ::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  for (const auto& route : routes_) {
    for (Box& box : route->boxes) CANDOR_TRY(post(*route, box));
    CANDOR_TRY(listen(*route));
  }
  SteadyTime next_beat{}, next_word{};
  for (int64_t n_idle = 0;; ++n_idle) {
    has_moved_ = false;
    const SteadyTime now = std::chrono::steady_clock::now();
    const bool is_time = now >= next_beat, may_hear = now >= next_word;
    if (is_time) next_beat = now + kBeat;
    if (may_hear) next_word = now + kHearing;
    bool is_out = true;
    for (const auto& route : routes_) {
      CANDOR_TRY(carry_in(*route));
      CANDOR_TRY(carry_out(*route));
      if (may_hear) CANDOR_TRY(hear(*route));
      CANDOR_TRY(say(*route, is_time));
      is_out = is_out && is_all_out(*route);
    }
    if (is_over.load() && is_out) break;
    if (has_moved_) n_idle = 0;
    const bool has_more = has_moved_ && spin_.load(std::memory_order_relaxed);  // else the rank wants the processor
    if (is_out && !has_more) rest(n_idle);
  }
  for (const auto& route : routes_) {
    for (Box& box : route->boxes) mpi_.cancel(&box.request);
    mpi_.cancel(&route->receive_request);
  }
  return {};
}

Result<bool> Carrier::is_done(candor_mpi_request& request, size_t& n_received) {
  int is_done = 0;
  if (const int code = mpi_.test(&request, &is_done, &n_received); code != 0) return mpi_failure(mpi_, "test", code);
  return is_done != 0;
}

Result<void> Carrier::post(Route& route, Box& box) {
  box.is_full = false;
  const int code = mpi_.receive(box.bytes.data(), box.bytes.size(), route.peer, kBytesTag, &box.request);
  if (code != 0) return mpi_failure(mpi_, "receive", code);
  return {};
}

Result<void> Carrier::listen(Route& route) {
  const int code = mpi_.receive(&route.received, sizeof(route.received), route.peer, kWordTag, &route.receive_request);
  if (code != 0) return mpi_failure(mpi_, "receive", code);
  return {};
}

// Pieces are sent from where they lie in the ring.
Result<void> Carrier::carry_out(Route& route) {
  Ring& ring = segment_.ring(rank_, route.peer);
  const uint64_t written = ring.n_written.load(std::memory_order_acquire);
  while (route.n_pieces < kPieces && route.n_begun < written) {
    const size_t at = route.n_begun % kRingBytes;
    const size_t n_bytes = std::min({written - route.n_begun, kPieceBytes, kRingBytes - at});
    Piece& piece = route.pieces[(route.first_piece + route.n_pieces) % kPieces];
    const int code = mpi_.send(ring.bytes.data() + at, n_bytes, route.peer, kBytesTag, &piece.request);
    if (code != 0) return mpi_failure(mpi_, "send", code);
    route.n_begun += n_bytes;
    piece.end = route.n_begun;
    ++route.n_pieces;
    has_moved_ = true;
  }
  return free_sent(route);
}

// The ring has room again where pieces are out.
Result<void> Carrier::free_sent(Route& route) {
  bool has_room = false;
  while (route.n_pieces > 0) {
    Piece& piece = route.pieces[route.first_piece];
    size_t n_bytes = 0;
    CANDOR_ASSIGN(const bool is_out, is_done(piece.request, n_bytes));
    if (!is_out) break;
    segment_.ring(rank_, route.peer).n_read.store(piece.end, std::memory_order_release);
    route.first_piece = (route.first_piece + 1) % kPieces;
    --route.n_pieces;
    has_room = true;
  }
  if (has_room) ring_bell(segment_.entry(rank_));
  has_moved_ = has_moved_ || has_room;
  return {};
}

bool Carrier::is_all_out(const Route& route) {
  const Ring& ring = segment_.ring(rank_, route.peer);
  return route.n_pieces == 0 && route.n_begun == ring.n_written.load(std::memory_order_acquire);
}

// As much of a box as its ring has room for; whether that was all.
bool Carrier::put(Route& route, Box& box) {
  Ring& ring = segment_.ring(route.peer, rank_);
  uint64_t written = ring.n_written.load(std::memory_order_relaxed);
  while (box.n_taken < box.n_bytes) {
    const uint64_t room = kRingBytes - (written - ring.n_read.load(std::memory_order_acquire));
    const size_t at = written % kRingBytes;
    const size_t n_bytes = std::min({box.n_bytes - box.n_taken, room, kRingBytes - at});
    if (n_bytes == 0) break;
    std::memcpy(ring.bytes.data() + at, box.bytes.data() + box.n_taken, n_bytes);
    written += n_bytes;
    box.n_taken += n_bytes;
    has_moved_ = true;
  }
  ring.n_written.store(written, std::memory_order_release);
  return box.n_taken == box.n_bytes;
}

Result<void> Carrier::carry_in(Route& route) {
  bool has_come = false;
  while (true) {
    Box& box = route.boxes[route.first_box];
    if (!box.is_full) {
      CANDOR_ASSIGN(box.is_full, is_done(box.request, box.n_bytes));
      if (!box.is_full) break;
      box.n_taken = 0;
    }
    const bool is_empty = put(route, box);
    has_come = true;
    if (!is_empty) break;
    CANDOR_TRY(post(route, box));
    route.first_box = (route.first_box + 1) % kPieces;
  }
  if (has_come) ring_bell(segment_.entry(rank_));
  return {};
}

// That this rank leaves is not said: all leave together, or MPI tells.
Result<void> Carrier::say(Route& route, bool is_time) {
  if (route.is_sending) {
    size_t n_bytes = 0;
    CANDOR_ASSIGN(const bool is_sent, is_done(route.send_request, n_bytes));
    route.is_sending = !is_sent;
  }
  const RankEntry& own = segment_.entry(rank_);
  const RankState state = own.state.load(std::memory_order_acquire);
  const bool is_news = state == RankState::kFailed && route.sent.state != state;
  if (route.is_sending || !(is_time || is_news)) return {};
  route.sent.beats = own.beats.load(std::memory_order_relaxed);
  route.sent.state = state == RankState::kLeft ? RankState::kHere : state;
  route.sent.message = own.message;
  route.sent.kind = own.kind;
  const int code = mpi_.send(&route.sent, sizeof(route.sent), route.peer, kWordTag, &route.send_request);
  if (code != 0) return mpi_failure(mpi_, "send", code);
  route.is_sending = true;
  return {};
}

Result<void> Carrier::hear(Route& route) {
  size_t n_bytes = 0;
  CANDOR_ASSIGN(const bool is_received, is_done(route.receive_request, n_bytes));
  if (!is_received) return {};
  RankEntry& peer = segment_.entry(route.peer);
  route.received.message.back() = '\0';
  if (peer.state.load() != RankState::kFailed) {
    peer.message = route.received.message;
    peer.kind = route.received.kind;
  }
  peer.beats.store(route.received.beats, std::memory_order_relaxed);
  peer.state.store(route.received.state, std::memory_order_release);
  return listen(route);
}

// Without an exchange nothing is urgent but what comes while ranks keep to their own processors.
void Carrier::rest(int64_t n_idle) {
  const bool spin = spin_.load(std::memory_order_relaxed);
  if (spin && n_idle < kCarrierSpins) return platform::spin_pause();
  if (!sign_.is_running()) return sign_.wait_for_one(kNapNs);
  const int64_t n_waits = n_idle - (spin ? kCarrierSpins : 0);
  if (n_waits < kCarrierYields) return std::this_thread::yield();
  std::this_thread::sleep_for(microseconds(n_waits < kCarrierYields + kShortNaps ? 20 : 500));
}

}  // namespace candor::comm
