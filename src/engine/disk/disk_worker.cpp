#include "engine/disk/disk_worker.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace candor::engine {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};    // at what other processes wrote
constexpr std::chrono::seconds kMostForWrites{10};  // for what waits to be written

constexpr size_t kMostSpare = 8;

// A large buffer from the system is cleared page by page: one that was used before is not.
std::vector<std::byte> taken_from(std::vector<std::vector<std::byte>>& spare) {
  if (spare.empty()) return {};
  std::vector<std::byte> taken = std::move(spare.back());
  spare.pop_back();
  return taken;
}

}  // namespace

bool Reading::take(std::vector<std::byte>& payload) {
  const std::lock_guard lock(mutex_);
  if (payload.capacity() > 0) spare_.push_back(std::exchange(payload, {}));
  if (came_.empty()) return false;
  payload = std::move(came_.front());
  came_.pop_front();
  n_staged_ -= payload.size();
  return true;
}

bool Reading::is_over() const {
  const std::lock_guard lock(mutex_);
  return is_over_ && came_.empty();
}

void Reading::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
}

DiskWorker::DiskWorker(std::shared_ptr<prefix_store::Store> store, std::function<void()> on_progress)
    : store_(std::move(store)), on_progress_(std::move(on_progress)), thread_([this] { run(); }) {}

DiskWorker::~DiskWorker() {
  {
    const Lock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void DiskWorker::read(std::shared_ptr<Reading> reading) {
  const Lock lock(mutex_);
  readings_.push_back(std::move(reading));
  changed_.notify_all();
}

bool DiskWorker::has_room_to_write() const {
  const Lock lock(mutex_);
  return n_to_write_ < kMostStaged;
}

bool DiskWorker::wait_for_room(std::chrono::steady_clock::time_point until) {
  Lock lock(mutex_);
  return written_.wait_until(lock, until, [this] { return n_to_write_ < kMostStaged; });
}

bool DiskWorker::write(const prefix_store::RecordHeader& header, std::span<const std::byte> block,
                       std::span<const std::byte> state) {
  if (!has_room_to_write()) return false;
  Write made{.header = header};
  {
    const Lock lock(mutex_);
    made.payload = taken_from(spare_);
  }
  made.payload.clear();
  made.payload.reserve(block.size() + state.size());
  made.payload.insert(made.payload.end(), block.begin(), block.end());
  made.payload.insert(made.payload.end(), state.begin(), state.end());
  const Lock lock(mutex_);
  n_to_write_ += made.payload.size();
  writes_.push_back(std::move(made));
  changed_.notify_all();
  return true;
}

DiskTimes DiskWorker::times() const {
  const Lock lock(mutex_);
  return times_;
}

void DiskWorker::run() {
  Lock lock(mutex_);
  std::chrono::steady_clock::time_point end{};
  while (true) {
    const bool is_last = is_ending_ && end != std::chrono::steady_clock::time_point{};
    if (is_ending_ && !is_last) end = std::chrono::steady_clock::now() + kMostForWrites;
    if (is_ending_) readings_.clear();
    if (is_ending_ && (writes_.empty() || std::chrono::steady_clock::now() >= end)) return;
    bool has_worked = false;
    for (size_t i = 0; i < readings_.size() && !has_worked; ++i) {
      const std::shared_ptr<Reading> reading = readings_[i];
      has_worked = read_next(*reading, lock);
      std::erase_if(readings_, [](const auto& one) {
        const std::lock_guard guard(one->mutex_);
        return one->is_over_;
      });
    }
    if (has_worked) continue;
    if (!writes_.empty()) {
      write_next(lock);
    } else if (changed_.wait_for(lock, kBetweenLooks) == std::cv_status::timeout) {
      lock.unlock();
      store_->end_writing();
      store_->refresh();
      lock.lock();
    }
  }
}

bool DiskWorker::read_next(Reading& reading, Lock& lock) {
  std::unique_lock guard(reading.mutex_);
  if (!reading.is_stopped_ && reading.n_staged_ >= kMostStaged) return false;
  const size_t next = reading.n_read_;
  if (reading.is_stopped_ || next == reading.wanted_.size()) {
    reading.is_over_ = true;
    guard.unlock();
    lock.unlock();
    on_progress_();
    lock.lock();
    return true;
  }
  std::vector<std::byte> payload = taken_from(reading.spare_);
  guard.unlock();
  lock.unlock();
  const WantedBlock& wanted = reading.wanted_[next];
  const auto began = std::chrono::steady_clock::now();
  bool is_there = false;
  try {
    is_there = store_->read(wanted.digest, wanted.parent, wanted.tokens, payload) &&
               payload.size() == wanted.block_bytes + wanted.state_bytes;
  } catch (const std::exception&) {  // no memory: it is computed instead
  }
  const auto took = std::chrono::steady_clock::now() - began;
  const size_t n_bytes = payload.size();
  guard.lock();
  ++reading.n_read_;
  if (is_there) {
    reading.n_staged_ += n_bytes;
    reading.came_.push_back(std::move(payload));
  }
  reading.is_over_ = !is_there || reading.n_read_ == reading.wanted_.size();
  guard.unlock();
  on_progress_();
  lock.lock();
  if (is_there) {
    times_.n_read_bytes += static_cast<int64_t>(n_bytes);
    times_.read_ns += std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  }
  return true;
}

void DiskWorker::write_next(Lock& lock) {
  Write next = std::move(writes_.front());
  writes_.pop_front();
  lock.unlock();
  bool is_written = false;
  try {
    is_written = store_->append(next.header, next.payload);
  } catch (const std::exception&) {  // no memory: it is computed again
  }
  lock.lock();
  const bool was_full = n_to_write_ >= kMostStaged;
  n_to_write_ -= next.payload.size();
  if (is_written) times_.n_written_bytes += static_cast<int64_t>(next.payload.size());
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(next.payload));
  written_.notify_all();
  if (!was_full) return;
  lock.unlock();
  on_progress_();
  lock.lock();
}

}  // namespace candor::engine
