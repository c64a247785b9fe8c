#include "support/late_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace candor::testing {
namespace {

constexpr int kTags = 4;

// Who makes the calls of this thread: MPI's functions do not say.
thread_local LateLink* link = nullptr;
thread_local int32_t own_rank = 0;

// What a request of candor_mpi.h holds: what is wanted, until it is there. Sends are done at once.
struct Wanted {
  std::span<std::byte> place;
  int32_t from = 0;
  int tag = 0;
};

int mpi_start(int* rank, int* size) {
  *rank = own_rank;
  *size = link->n_ranks();
  return 0;
}

int mpi_send(const void* bytes, size_t n_bytes, int peer, int tag, candor_mpi_request* request) {
  link->send(own_rank, peer, tag, {static_cast<const std::byte*>(bytes), n_bytes});
  request->words[0] = nullptr;
  return 0;
}

int mpi_receive(void* bytes, size_t n_bytes, int peer, int tag, candor_mpi_request* request) {
  request->words[0] = new Wanted{{static_cast<std::byte*>(bytes), n_bytes}, peer, tag};
  return 0;
}

int mpi_cancel(candor_mpi_request* request) {
  delete static_cast<Wanted*>(std::exchange(request->words[0], nullptr));
  return 0;
}

int mpi_test(candor_mpi_request* request, int* is_done, size_t* n_received) {
  const auto* wanted = static_cast<const Wanted*>(request->words[0]);
  *is_done = 1;
  if (wanted == nullptr) return 0;
  const int64_t n_bytes = link->receive(wanted->from, own_rank, wanted->tag, wanted->place);
  *is_done = n_bytes >= 0 ? 1 : 0;
  if (n_bytes < 0) return 0;
  *n_received = static_cast<size_t>(n_bytes);
  return mpi_cancel(request);
}

int mpi_stop() {
  return 0;
}

void mpi_describe(int, char* text, size_t n_bytes) {
  std::strncpy(text, "made up", n_bytes);
}

}  // namespace

LateLink::LateLink(int32_t n_ranks, LinkSpeed speed) : n_ranks_(n_ranks), speed_(speed) {
  const auto n = static_cast<size_t>(n_ranks);
  for (size_t i = 0; i < n * n * kTags; ++i) ways_.push_back(std::make_unique<Way>());
  free_at_.resize(n);
}

LateLink::Way& LateLink::way(int32_t from, int32_t to, int tag) {
  return *ways_[static_cast<size_t>((from * n_ranks_ + to) * kTags + tag)];
}

void LateLink::send(int32_t from, int32_t to, int tag, std::span<const std::byte> bytes) {
  if (is_cut()) return;
  const auto takes =
      std::chrono::nanoseconds(static_cast<int64_t>(1e9 * static_cast<double>(bytes.size()) / speed_.bytes_per_s));
  Time out;
  {
    const std::lock_guard lock(mutex_);
    Time& free_at = free_at_[static_cast<size_t>(from)];
    out = free_at = std::max(free_at, std::chrono::steady_clock::now()) + takes;
  }
  Way& there = way(from, to, tag);
  const std::lock_guard lock(there.mutex);
  there.messages.push_back({out + speed_.latency, {bytes.begin(), bytes.end()}});
}

int64_t LateLink::receive(int32_t from, int32_t to, int tag, std::span<std::byte> bytes) {
  Way& here = way(from, to, tag);
  const std::lock_guard lock(here.mutex);
  if (here.messages.empty() || is_cut() || here.messages.front().due > std::chrono::steady_clock::now()) return -1;
  const Message message = std::move(here.messages.front());
  here.messages.pop_front();
  EXPECT_LE(message.bytes.size(), bytes.size());
  std::copy(message.bytes.begin(), message.bytes.end(), bytes.begin());
  return static_cast<int64_t>(message.bytes.size());
}

const candor_mpi_calls& LateLink::calls() {
  static const candor_mpi_calls table = {CANDOR_MPI_VERSION, mpi_start, mpi_send, mpi_receive, mpi_test,
                                         mpi_cancel,         mpi_stop,  mpi_describe};
  return table;
}

void LateLink::speak_as(int32_t rank) {
  link = this;
  own_rank = rank;
}

FarRank::FarRank(std::shared_ptr<LateLink> link, int32_t rank, comm::WatchOptions watch, bool spin)
    : link_(std::move(link)) {
  segment_ = *comm::Segment::make(link_->n_ranks());
  comm::CarrierOptions options{.rank = rank, .spin = spin};
  for (int32_t peer = 0; peer < link_->n_ranks(); ++peer) {
    if (peer == rank) continue;
    segment_->keep_apart(peer, "host" + std::to_string(peer));
    options.far.push_back(peer);
  }
  comm_ = std::make_unique<comm::ShmCommunicator>(segment_, rank,
                                                  comm::ShmOptions{.watch = watch, .spin = spin, .sign = &sign_});
  carrier_ = std::make_unique<comm::Carrier>(LateLink::calls(), *segment_, sign_, options);
  thread_ = std::thread([this, rank] {
    link_->speak_as(rank);
    carried_ = carrier_->run(is_over_);
  });
}

FarRank::~FarRank() {
  static_cast<void>(leave());
}

Result<void> FarRank::leave() {
  is_over_.store(true);
  if (thread_.joinable()) thread_.join();
  return carried_;
}

}  // namespace candor::testing
