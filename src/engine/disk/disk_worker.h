#pragma once
// The thread that reads and writes blocks of the prefix cache, so that the engine thread never waits for a disk. Reads
// go before writes. What is read or waits to be written takes at most kMostStaged bytes of each. Any thread, but for
// what is said.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "prefix_store/record.h"
#include "prefix_store/store.h"

namespace candor::engine {

// One block of a prompt, as it is named on the disk.
struct WantedBlock {
  prefix_store::Digest digest{};
  prefix_store::Digest parent{};
  std::vector<int32_t> tokens{};
  uint64_t block_bytes = 0;  // both as they must be
  uint64_t state_bytes = 0;
};

// The blocks of one prompt, on their way. The worker fills, the engine thread takes.
class Reading {
 public:
  explicit Reading(std::vector<WantedBlock> wanted) : wanted_(std::move(wanted)) {}

  const std::vector<WantedBlock>& wanted() const { return wanted_; }
  // The payload of the next block in order, for the one before, whose memory is used again. False where it has not come
  // yet, or none comes any more.
  bool take(std::vector<std::byte>& payload);
  // Nothing that was not taken comes any more.
  bool is_over() const;
  // Nobody wants the rest.
  void stop();

 private:
  friend class DiskWorker;
  const std::vector<WantedBlock> wanted_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<std::vector<std::byte>> came_;
  std::vector<std::vector<std::byte>> spare_;  // memory of what was taken
  bool is_over_ = false;
  bool is_stopped_ = false;
  size_t n_staged_ = 0;  // bytes
  size_t n_read_ = 0;    // blocks, or tried
};

struct DiskTimes {
  int64_t n_read_bytes = 0;
  int64_t read_ns = 0;
  int64_t n_written_bytes = 0;
};

class DiskWorker {
 public:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr size_t kMostStaged = size_t{64} << 20;

  // on_progress: called on the worker's thread when something was read, or there is room to write again.
  DiskWorker(std::shared_ptr<prefix_store::Store> store, std::function<void()> on_progress);
  // Writes what waits, for at most so long as finish() said (or all of it), then joins.
  ~DiskWorker();
  DiskWorker(const DiskWorker&) = delete;
  DiskWorker& operator=(const DiskWorker&) = delete;

  void read(std::shared_ptr<Reading> reading);
  // Something was taken from it.
  void go_on() {
    const Lock lock(mutex_);
    changed_.notify_all();
  }
  bool has_room_to_write() const;
  // False where there is none by then.
  bool wait_for_room(std::chrono::steady_clock::time_point until);
  // Copies the parts. False where there is no room.
  bool write(const prefix_store::RecordHeader& header, std::span<const std::byte> block,
             std::span<const std::byte> state);
  DiskTimes times() const;

 private:
  struct Write {
    prefix_store::RecordHeader header{};
    std::vector<std::byte> payload{};
  };

  void run();
  // One block. False where the reading waits until something is taken.
  bool read_next(Reading& reading, Lock& lock);
  void write_next(Lock& lock);

  const std::shared_ptr<prefix_store::Store> store_;
  const std::function<void()> on_progress_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable written_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<Reading>> readings_;
  std::deque<Write> writes_;
  std::vector<std::vector<std::byte>> spare_;  // memory of what was written
  size_t n_to_write_ = 0;  // bytes
  DiskTimes times_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace candor::engine
