#include "comm/mpi/mpi_job.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "comm/mpi/mpi_library.h"

namespace candor::comm {
namespace {

using std::chrono::milliseconds;

constexpr int kHelloTag = 3;
constexpr size_t kMostHelloBytes = 4096;  // of any version: those of another one are as long as they like
static_assert(sizeof(Hello) <= kMostHelloBytes);
constexpr milliseconds kGoodbye{15'000};  // all answers are out: a slow end of MPI is no lost rank

std::atomic<MpiJob*> the_job{nullptr};  // MPI's own is one for a process as well

// The memory that another rank of this host offers.
Result<std::shared_ptr<Segment>> segment_of(const Hello& hello) {
  const std::string path = "/proc/" + std::to_string(hello.pid) + "/fd/" + std::to_string(hello.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor >= 0) return Segment::attach(descriptor);
  return fail(ErrorKind::kInvalidInput,
              "the memory of another rank of this host cannot be shared: " + path + ": " + std::strerror(errno) +
                  "; with CANDOR_RANKS_LINK=mpi they speak by MPI alone",
              "ranks");
}

void close_texts(Hello& hello) {
  for (const std::span<char> text : {std::span<char>(hello.version), std::span<char>(hello.host),
                                     std::span<char>(hello.machine), std::span<char>(hello.command)}) {
    text.back() = '\0';
  }
}

std::string list_ranks(const std::vector<int32_t>& ranks) {
  std::string names;
  for (const int32_t rank : ranks) names += (names.empty() ? "rank " : ", rank ") + std::to_string(rank);
  return names + (ranks.size() == 1 ? " is" : " are");
}

std::string place_text(const MpiPlace& place) {
  return "rank " + std::to_string(place.rank) + " of " + std::to_string(place.size);
}

std::vector<int32_t> missing_of(const std::vector<bool>& has_come) {
  std::vector<int32_t> missing;
  for (size_t rank = 0; rank < has_come.size(); ++rank) {
    if (!has_come[rank]) missing.push_back(static_cast<int32_t>(rank));
  }
  return missing;
}

}  // namespace

MpiJob::MpiJob(const candor_mpi_calls& mpi, JobOptions options)
    : mpi_(mpi),
      options_(std::move(options)),
      place_(mpi_place().value_or(MpiPlace{})),
      roll_call_(mpirun_job(), place_.rank) {}

MpiJob* MpiJob::current() {
  return the_job.load();
}

Result<MpiJob*> MpiJob::join(JobOptions options) {
  CANDOR_CHECK(current() == nullptr);
  CANDOR_ASSIGN(const candor_mpi_calls* const mpi, open_mpi());
  // Never deleted: its thread may never come back from MPI.
  MpiJob* job = new MpiJob(*mpi, std::move(options));
  the_job.store(job);
  job->thread_ = std::thread([job] { job->live(); });
  job->thread_.detach();
  CANDOR_TRY(job->wait_until_ready());
  CANDOR_TRY(job->comm_->wait_for_all(job->options_.patience));
  return job;
}

Result<void> MpiJob::wait_until_ready() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, options_.patience, [this] { return stage_ >= Stage::kReady || error_; });
  if (error_) return *error_;
  if (stage_ >= Stage::kReady) return {};
  const std::string seconds = std::to_string(options_.patience.count() / 1000) + " s";
  if (stage_ == Stage::kMeeting)
    return lost_rank(list_ranks(missing_of(has_come_)) + " not heard of within " + seconds);
  const auto missing = roll_call_.missing(place_.size);
  if (missing.empty()) return lost_rank("MPI has not started within " + seconds + ", though all ranks have come");
  return lost_rank("MPI has not started within " + seconds + ": " + list_ranks(missing) +
                   " not on this host; a rank has not come, or a link between hosts does not carry");
}

void MpiJob::enter(Stage stage) {
  {
    const std::lock_guard lock(mutex_);
    stage_ = stage;
  }
  changed_.notify_all();
}

void MpiJob::end_with(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }
  if (comm_ != nullptr) comm_->lose(error);
  changed_.notify_all();
}

Error MpiJob::refuse(Error error) {
  const std::lock_guard lock(mutex_);
  is_refused_ = true;
  return error;
}

bool MpiJob::has_failed_here() {
  const std::lock_guard lock(mutex_);
  return error_ && !is_refused_;
}

void MpiJob::live() {
  const auto lived = [this]() -> Result<void> {
    CANDOR_TRY(start());
    CANDOR_TRY(meet());
    CANDOR_TRY(take_places());
    enter(Stage::kReady);
    CANDOR_TRY(carrier_->run(is_over_));
    if (const int code = mpi_.stop(); code != 0) return mpi_failure(mpi_, "finalize", code);
    return {};
  }();
  if (!lived) return end_with(lived.error());
  enter(Stage::kStopped);
}

Result<void> MpiJob::start() {
  int rank = 0;
  int size = 0;
  if (const int code = mpi_.start(&rank, &size); code != 0) return mpi_failure(mpi_, "init", code);
  if (rank != place_.rank || size != place_.size) {
    return refuse(fail(ErrorKind::kInvalidInput,
                       "this process was started as " + place_text(place_) + ", and MPI calls it " +
                           place_text({rank, size}) +
                           ": start it with the mpirun of the MPI that candor was built with",
                       "ranks"));
  }
  if (size > kMaxRanks) {
    return refuse(fail(
        ErrorKind::kInvalidInput,
        "mpirun started " + std::to_string(size) + " ranks; at most " + std::to_string(kMaxRanks) + " can be used",
        "ranks"));
  }
  rank_ = rank;
  hellos_.resize(static_cast<size_t>(size));
  CANDOR_ASSIGN(segment_, Segment::make(size));
  Hello& own = hellos_[static_cast<size_t>(rank)];
  own = make_hello(options_.command, this_machine(), options_.shares_memory);
  own.descriptor = segment_->descriptor();
  const std::lock_guard lock(mutex_);
  has_come_.assign(hellos_.size(), false);
  has_come_[static_cast<size_t>(rank)] = true;
  return {};
}

// Exchanges the hellos of all ranks. A rank that waits for this names those that have not come.
Result<void> MpiJob::meet() {
  enter(Stage::kMeeting);
  const size_t n_ranks = hellos_.size();
  const Hello own = hellos_[static_cast<size_t>(rank_)];
  std::vector<candor_mpi_request> sent(n_ranks), received(n_ranks);
  std::vector<std::array<std::byte, kMostHelloBytes>> heard(n_ranks);
  std::vector<bool> is_sent(n_ranks, false);
  for (size_t i = 0; i < n_ranks; ++i) {
    const auto peer = static_cast<int32_t>(i);
    if (peer == rank_) continue;
    int code = mpi_.receive(heard[i].data(), kMostHelloBytes, peer, kHelloTag, &received[i]);
    if (code == 0) code = mpi_.send(&own, sizeof(Hello), peer, kHelloTag, &sent[i]);
    if (code != 0) return mpi_failure(mpi_, "send", code);
  }
  is_sent[static_cast<size_t>(rank_)] = true;
  const auto ask = [&](candor_mpi_request& request, bool is_known) -> Result<bool> {
    int is_done = 0;
    size_t n_bytes = 0;
    if (is_known) return true;
    if (const int code = mpi_.test(&request, &is_done, &n_bytes); code != 0) return mpi_failure(mpi_, "test", code);
    return is_done != 0;
  };
  for (bool is_done = false; !is_done; std::this_thread::sleep_for(std::chrono::microseconds(100))) {
    is_done = true;
    for (size_t i = 0; i < n_ranks; ++i) {
      CANDOR_ASSIGN(const bool has_come, ask(received[i], has_come_[i]));
      CANDOR_ASSIGN(is_sent[i], ask(sent[i], is_sent[i]));
      const std::lock_guard lock(mutex_);
      has_come_[i] = has_come;
      is_done = is_done && has_come && is_sent[i];
    }
  }
  for (size_t i = 0; i < n_ranks; ++i) {
    if (i != static_cast<size_t>(rank_)) std::memcpy(&hellos_[i], heard[i].data(), sizeof(Hello));
    close_texts(hellos_[i]);
  }
  return {};
}

// Whom one refuses, all refuse, so that MPI can be left in order.
Result<void> MpiJob::take_places() {
  if (auto checked = check_hellos(hellos_); !checked) {
    mpi_.stop();
    return refuse(checked.error());
  }
  near_ = ranks_near(hellos_, rank_);
  if (near_.front() != rank_) {
    CANDOR_ASSIGN(segment_, segment_of(hellos_[static_cast<size_t>(near_.front())]));
  }
  CarrierOptions carried{.rank = rank_};
  for (int32_t rank = 0; rank < size(); ++rank) {
    if (std::ranges::find(near_, rank) != near_.end()) continue;
    carried.far.push_back(rank);
    segment_->keep_apart(rank, hellos_[static_cast<size_t>(rank)].host.data());
  }
  comm_ = std::make_unique<ShmCommunicator>(segment_, rank_,
                                            ShmOptions{.spin = false, .sign = carried.far.empty() ? nullptr : &sign_});
  carried.spin = false;
  carrier_ = std::make_unique<Carrier>(mpi_, *segment_, sign_, std::move(carried));
  return {};
}

Result<std::unique_ptr<Communicator>> MpiJob::take() {
  if (!is_taken_.exchange(true)) return std::make_unique<JobCommunicator>(*comm_, is_taken_);
  return fail(ErrorKind::kUnsupported,
              "the ranks that mpirun started share one model at a time: give others an mpirun of their own",
              "ranks");
}

void MpiJob::set_spin(bool spin) {
  comm_->set_spin(spin);
  carrier_->set_spin(spin);
}

bool MpiJob::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (stage_ != Stage::kReady || error_) return false;
  }
  if (!comm_->health()) return false;
  std::vector<std::byte> nothing;
  if (rank_ == 0 && !comm_->broadcast(nothing)) return false;
  if (!comm_->barrier()) return false;
  comm_->expect_end();
  is_over_.store(true);
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kGoodbye, [this] { return stage_ == Stage::kStopped || error_; }) && !error_;
}

}  // namespace candor::comm
