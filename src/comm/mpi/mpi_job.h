#pragma once
// The ranks that mpirun started, as one of them sees them: who they are, and a communicator between them, over shared
// memory within a host and by MPI between hosts. A process is in one job at most, since MPI knows one alone.

#include <candor_mpi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "comm/mpi/carrier.h"
#include "comm/mpi/hello.h"
#include "comm/mpi/mpi_place.h"
#include "comm/mpi/roll_call.h"
#include "comm/shm/exchange_sign.h"
#include "comm/shm/segment.h"
#include "comm/shm/shm_communicator.h"

namespace candor::comm {

struct JobOptions {
  std::string command{};      // what this process was started as: the same of all ranks
  bool shares_memory = true;  // with ranks of its host
  std::chrono::milliseconds patience{30'000};
};

class MpiJob {
 public:
  // Waits until all ranks have come and are of one kind. Once for a process.
  static Result<MpiJob*> join(JobOptions options);
  // nullptr where nobody joined.
  static MpiJob* current();

  int32_t rank() const { return rank_; }
  int32_t size() const { return static_cast<int32_t>(hellos_.size()); }
  // Ranks of this host, ascending.
  const std::vector<int32_t>& near() const { return near_; }
  // Ranks of this host, with those that share no memory.
  int32_t n_beside() const { return count_beside(hellos_, rank_); }
  // Which of them this one is.
  int32_t rank_beside() const { return count_before(hellos_, rank_); }
  bool has_far() const { return near_.size() < hellos_.size(); }
  Communicator& communicator() { return *comm_; }
  // The communicator for one model, which is given back by its end; one at a time.
  Result<std::unique_ptr<Communicator>> take();
  // Whether threads that wait have processors of their own.
  void set_spin(bool spin);
  // Everybody who would wait for a rank is told so.
  void lose(const std::string& why) { comm_->lose(lost_rank(why)); }
  // Whether it ended by a failure of MPI in this process, which others hear nothing of.
  bool has_failed_here();
  // Together with all others. False where somebody is lost, or does not end in time: then no more of this process may
  // run than its end.
  bool leave();

 private:
  enum class Stage : uint8_t { kStarting, kMeeting, kReady, kStopped };

  MpiJob(const candor_mpi_calls& mpi, JobOptions options);
  Result<void> wait_until_ready();
  // Of the thread that speaks MPI.
  void live();
  Result<void> start();
  Result<void> meet();
  Result<void> take_places();
  void enter(Stage stage);
  void end_with(const Error& error);
  // What all ranks find, so that rank 0 says it.
  Error refuse(Error error);

  const candor_mpi_calls& mpi_;
  JobOptions options_;
  MpiPlace place_;
  RollCall roll_call_;

  // Written by the thread before it is ready; constant from then on.
  int32_t rank_ = 0;
  std::vector<Hello> hellos_;
  std::vector<int32_t> near_;
  std::shared_ptr<Segment> segment_;
  ExchangeSign sign_;
  std::unique_ptr<ShmCommunicator> comm_;
  std::unique_ptr<Carrier> carrier_;

  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_taken_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::kStarting;  // guarded by mutex_
  std::vector<bool> has_come_;      // [size]; guarded by mutex_
  std::optional<Error> error_;      // guarded by mutex_
  bool is_refused_ = false;         // by all ranks alike; guarded by mutex_
  std::thread thread_;
};

// Passes everything on to a job's own: what ends it does not end the job.
class JobCommunicator final : public Communicator {
 public:
  JobCommunicator(Communicator& job, std::atomic<bool>& is_taken) : job_(job), is_taken_(is_taken) {}
  ~JobCommunicator() override { is_taken_.store(false); }
  int32_t rank() const override { return job_.rank(); }
  int32_t size() const override { return job_.size(); }
  Result<void> gather(const RowSlices& slices, Receivers receivers, uint64_t tag) override {
    return job_.gather(slices, receivers, tag);
  }
  Result<void> broadcast(std::vector<std::byte>& message) override { return job_.broadcast(message); }
  Result<void> barrier() override { return job_.barrier(); }
  void say_failed(const Error& why) override { job_.say_failed(why); }
  Result<void> health() const override { return job_.health(); }
  Traffic traffic() const override { return job_.traffic(); }

 private:
  Communicator& job_;
  std::atomic<bool>& is_taken_;
};

}  // namespace candor::comm
