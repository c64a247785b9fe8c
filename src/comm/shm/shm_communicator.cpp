#include "comm/shm/shm_communicator.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "platform/futex.h"

namespace candor::comm {
namespace {

constexpr uint64_t kBroadcastTag = 1;
constexpr uint64_t kBarrierTag = 2;
constexpr size_t kMostPushed = size_t{32} << 10;  // before the reader hears of it
constexpr int64_t kSpins = 4000;                  // some 50 us
constexpr int64_t kYields = 400;
constexpr int64_t kSleepNs = 50'000'000;

// Row i of `rows` from its place among slices to its place in the whole: from the last on, so that none is overwritten.
void spread(const RowSlices& slices, int32_t rank) {
  const auto n_own = static_cast<size_t>(slices.cols_of(rank));
  const auto n_all = static_cast<size_t>(slices.n_cols());
  const auto begin = static_cast<size_t>(slices.bounds[static_cast<size_t>(rank)]);
  if (n_own == n_all || n_own == 0) return;
  for (auto i = static_cast<size_t>(slices.n_rows); i-- > 0;) {
    std::memmove(slices.rows + i * n_all + begin, slices.rows + i * n_own, n_own * sizeof(float));
  }
}

// The columns of a rank, of rows that are whole.
ByteRows columns_of(const RowSlices& slices, int32_t rank) {
  auto* first = reinterpret_cast<std::byte*>(slices.rows + slices.bounds[static_cast<size_t>(rank)]);
  return {first, static_cast<size_t>(slices.cols_of(rank)) * sizeof(float),
          static_cast<size_t>(slices.n_cols()) * sizeof(float), static_cast<size_t>(slices.n_rows)};
}

template <class T>
ByteRows bytes_of(T& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof(T), sizeof(T), 1};
}

}  // namespace

ByteRows::ByteRows(std::byte* first, size_t row_bytes, size_t stride_bytes, size_t n_rows)
    : first_(first), row_bytes_(row_bytes), stride_bytes_(stride_bytes), total_(row_bytes * n_rows) {
  if (row_bytes == stride_bytes) row_bytes_ = stride_bytes_ = total_;
}

std::span<std::byte> ByteRows::next() const {
  if (is_done()) return {};
  const size_t row = done_ / row_bytes_;
  const size_t col = done_ % row_bytes_;
  return {first_ + row * stride_bytes_ + col, row_bytes_ - col};
}

ShmCommunicator::ShmCommunicator(std::shared_ptr<Segment> segment, int32_t rank, ShmOptions options)
    : segment_(std::move(segment)),
      rank_(rank),
      options_(options),
      watch_(segment_, rank, options.watch),
      lines_(static_cast<size_t>(segment_->n_ranks())) {
  RankEntry& own = segment_->entry(rank_);
  own.pid.store(::getpid());
  own.state.store(RankState::kHere, std::memory_order_release);
}

ShmCommunicator::~ShmCommunicator() {
  watch_.stop();
  RankState here = RankState::kHere;
  segment_->entry(rank_).state.compare_exchange_strong(here, RankState::kLeft);
}

void ShmCommunicator::say_failed(const Error& why) {
  RankEntry& own = segment_->entry(rank_);
  if (own.state.load() == RankState::kFailed) return;
  own.message[why.message.copy(own.message.data(), own.message.size() - 1)] = '\0';
  own.kind = why.kind;
  own.state.store(RankState::kFailed, std::memory_order_release);
}

Result<void> ShmCommunicator::wait_for_all(std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{2};
  const auto end = std::chrono::steady_clock::now() + patience;
  for (int32_t peer = 0; peer < size(); ++peer) {
    while (segment_->entry(peer).state.load(std::memory_order_acquire) == RankState::kComing) {
      CANDOR_TRY(health());
      if (std::chrono::steady_clock::now() > end) {
        return lost_rank("rank " + std::to_string(peer) + " has not come within " +
                         std::to_string(patience.count() / 1000) + " s: is the machine too busy to start it?");
      }
      std::this_thread::sleep_for(kPause);
    }
  }
  return health();
}

void ShmCommunicator::clear_lines() {
  for (Line& line : lines_) line = {};
}

void ShmCommunicator::send(int32_t peer, uint64_t tag, const ByteRows& rows) {
  Line& to = line(peer);
  to.head_out = {tag, rows.total()};
  to.out_head = bytes_of(to.head_out);
  to.out = rows;
  traffic_.bytes += sizeof(Header) + rows.total();
}

void ShmCommunicator::receive(int32_t peer, uint64_t tag, const ByteRows& rows) {
  Line& from = line(peer);
  from.expected = {tag, rows.total()};
  from.in_head = bytes_of(from.head_in);
  from.in = rows;
}

Result<void> ShmCommunicator::gather(const RowSlices& slices, Receivers receivers, uint64_t tag) {
  CANDOR_DCHECK(slices.bounds.size() == lines_.size() + 1);
  ++traffic_.n_gathers;
  const bool is_receiver = receivers == Receivers::kAll || rank_ == 0;
  clear_lines();
  if (is_receiver) spread(slices, rank_);
  ByteRows own = columns_of(slices, rank_);
  if (!is_receiver) own = {reinterpret_cast<std::byte*>(slices.rows), own.total(), own.total(), 1};
  for (int32_t peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    const bool peer_receives = receivers == Receivers::kAll || peer == 0;
    if (peer_receives && slices.cols_of(rank_) > 0) send(peer, tag, own);
    if (is_receiver && slices.cols_of(peer) > 0) receive(peer, tag, columns_of(slices, peer));
  }
  return run_lines();
}

Result<void> ShmCommunicator::broadcast(std::vector<std::byte>& message) {
  ++traffic_.n_broadcasts;
  uint64_t n_bytes = message.size();
  clear_lines();
  for (int32_t peer = 1; rank_ == 0 && peer < size(); ++peer) send(peer, kBroadcastTag, bytes_of(n_bytes));
  if (rank_ != 0) receive(0, kBroadcastTag, bytes_of(n_bytes));
  CANDOR_TRY(run_lines());
  message.resize(n_bytes);
  clear_lines();
  const ByteRows bytes(message.data(), n_bytes, n_bytes, 1);
  for (int32_t peer = 1; rank_ == 0 && peer < size(); ++peer) send(peer, kBroadcastTag, bytes);
  if (rank_ != 0) receive(0, kBroadcastTag, bytes);
  return run_lines();
}

Result<void> ShmCommunicator::barrier() {
  clear_lines();
  for (int32_t peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    send(peer, kBarrierTag, {});
    receive(peer, kBarrierTag, {});
  }
  return run_lines();
}

Result<void> ShmCommunicator::run_lines() {
  if (options_.sign == nullptr) return move_until_done();
  options_.sign->change();
  auto done = move_until_done();
  if (done && !options_.spin) give_way();
  options_.sign->change();
  return done;
}

bool ShmCommunicator::is_carried() {
  for (int32_t peer = 0; peer < size(); ++peer) {
    if (peer == rank_ || !segment_->is_apart(peer)) continue;
    const Ring& ring = segment_->ring(rank_, peer);
    if (ring.n_read.load(std::memory_order_acquire) != ring.n_written.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

// A rank that comes last has everything at once and would go on computing, while what the others wait for lies there
// until the thread that carries it, on the same processor, gets its turn: a part of a millisecond.
void ShmCommunicator::give_way() {
  for (int64_t i = 0; i < kYields && watch_.is_sound() && !is_carried(); ++i) std::this_thread::yield();
}

Result<void> ShmCommunicator::move_until_done() {
  for (int64_t n_idle = 0;;) {
    const bool is_sound = watch_.is_sound();  // asked first: what a peer sent before it left still counts
    bool is_done = true;
    const bool has_moved = move_all(is_done);
    if (is_astray_) return health();
    if (is_done) return {};
    if (!is_sound) return health();
    n_idle = has_moved ? 0 : n_idle + 1;
    if (!has_moved) wait(n_idle);
  }
}

bool ShmCommunicator::move_all(bool& is_done) {
  bool has_moved = false;
  for (int32_t peer = 0; peer < size(); ++peer) {
    if (line(peer).is_done()) continue;
    has_moved |= move(peer);
    is_done &= line(peer).is_done();
  }
  return has_moved;
}

bool ShmCommunicator::move(int32_t peer) {
  Line& with = line(peer);
  bool has_moved = push(peer, with.out_head);
  if (with.out_head.is_done()) has_moved |= push(peer, with.out);
  const bool had_head = with.in_head.is_done();
  has_moved |= pull(peer, with.in_head);
  if (!had_head && with.in_head.is_done() &&
      (with.head_in.tag != with.expected.tag || with.head_in.n_bytes != with.expected.n_bytes)) {
    is_astray_ = true;
    watch_.report(fail(ErrorKind::kInternal, "rank " + std::to_string(peer) + " has lost its way: it sent " +
                                                 std::to_string(with.head_in.n_bytes) +
                                                 " bytes of another kind, expected " +
                                                 std::to_string(with.expected.n_bytes)));
    return has_moved;
  }
  if (with.in_head.is_done()) has_moved |= pull(peer, with.in);
  if (has_moved) ring_bell(segment_->entry(peer));
  return has_moved;
}

bool ShmCommunicator::push(int32_t peer, ByteRows& rows) {
  Ring& ring = segment_->ring(rank_, peer);
  bool has_moved = false;
  uint64_t written = ring.n_written.load(std::memory_order_relaxed);
  while (!rows.is_done()) {
    const uint64_t room = kRingBytes - (written - ring.n_read.load(std::memory_order_acquire));
    const auto bytes = rows.next();
    const size_t at = written % kRingBytes;
    const size_t n = std::min({bytes.size(), room, kRingBytes - at, kMostPushed});
    if (n == 0) break;
    std::memcpy(ring.bytes.data() + at, bytes.data(), n);
    written += n;
    ring.n_written.store(written, std::memory_order_release);
    rows.advance(n);
    has_moved = true;
  }
  return has_moved;
}

bool ShmCommunicator::pull(int32_t peer, ByteRows& rows) {
  Ring& ring = segment_->ring(peer, rank_);
  bool has_moved = false;
  uint64_t read = ring.n_read.load(std::memory_order_relaxed);
  while (!rows.is_done()) {
    const uint64_t there = ring.n_written.load(std::memory_order_acquire) - read;
    const auto bytes = rows.next();
    const size_t at = read % kRingBytes;
    const size_t n = std::min({bytes.size(), there, kRingBytes - at});
    if (n == 0) break;
    std::memcpy(bytes.data(), ring.bytes.data() + at, n);
    read += n;
    ring.n_read.store(read, std::memory_order_release);
    rows.advance(n);
    has_moved = true;
  }
  return has_moved;
}

void ShmCommunicator::wait(int64_t n_idle) {
  if (options_.spin && n_idle < kSpins) return platform::spin_pause();
  if (n_idle < (options_.spin ? kSpins : 0) + kYields) return std::this_thread::yield();
  RankEntry& own = segment_->entry(rank_);
  const uint32_t seen = own.bell.load();
  own.is_sleeping.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  bool is_done = true;
  if (!move_all(is_done) && !is_done && watch_.is_sound()) platform::futex_wait_shared(own.bell, seen, kSleepNs);
  own.is_sleeping.store(0, std::memory_order_relaxed);
}

}  // namespace candor::comm
