#include "engine/open/mpi_ranks.h"

#include <algorithm>
#include <utility>

#include "comm/mpi/mpi_job.h"
#include "comm/mpi/mpi_library.h"
#include "engine/open/rank_crew.h"

namespace candor::engine {
namespace {

// What carries bytes to other hosts wants a processor as well.
bool can_spin(const EngineOptions& options, const comm::MpiJob& job) {
  return has_processors_for(job.n_beside() * (joined_threads(options) + (job.has_far() ? 1 : 0)));
}

Result<backend::Crew> take_crew(EngineOptions options) {
  comm::MpiJob& job = *comm::MpiJob::current();
  CANDOR_ASSIGN(std::unique_ptr<comm::Communicator> comm, job.take());
  CANDOR_TRY(share_options(options, *comm));
  job.set_spin(can_spin(options, job));
  return backend::Crew{nullptr, std::move(comm)};
}

Result<void> follow_one(const EngineOptions& options, comm::MpiJob& job) {
  CANDOR_ASSIGN(std::unique_ptr<comm::Communicator> comm, job.take());
  job.set_spin(can_spin(options, job));
  auto inner = make_rank_inner(options, job.rank());
  if (!inner) {
    comm->say_failed(inner.error().message);
    return inner.error();
  }
  return follow_as_rank(options, std::move(*inner), job.rank(), {nullptr, std::move(comm)});
}

}  // namespace

std::optional<MpiRanks> mpirun_ranks() {
  const auto place = comm::mpi_place();
  if (!place) return std::nullopt;
  return MpiRanks{place->rank, place->size};
}

Result<void> join_mpi(const std::string& command, bool shares_memory) {
  auto job = comm::MpiJob::join({.command = command, .shares_memory = shares_memory});
  return job ? Result<void>{} : Result<void>{job.error()};
}

std::optional<MpiRanks> joined_ranks() {
  const comm::MpiJob* job = comm::MpiJob::current();
  if (job == nullptr) return std::nullopt;
  return MpiRanks{job->rank(), job->size()};
}

Result<void> follow_mpi() {
  comm::MpiJob& job = *comm::MpiJob::current();
  while (true) {
    EngineOptions options;
    CANDOR_ASSIGN(const bool goes_on, share_options(options, job.communicator()));
    if (!goes_on) return {};
    CANDOR_TRY(follow_one(options, job));
  }
}

void lose_mpi(const std::string& why) {
  comm::MpiJob::current()->lose(why);
}

bool leave_mpi() {
  return comm::MpiJob::current()->leave();
}

Result<void> check_joined(const EngineOptions& options) {
  const auto joined = joined_ranks();
  if (joined && joined->rank == 0 && joined->size == options.n_ranks) return {};
  return fail(ErrorKind::kInvalidInput,
              "uses_mpi asks for " + std::to_string(options.n_ranks) + " ranks that joined, this one being rank 0; " +
                  (joined ? "rank " + std::to_string(joined->rank) + " of " + std::to_string(joined->size) + " did"
                          : "none did"),
              "ranks");
}

backend::RankOptions joined_rank_options(const EngineOptions& options) {
  const comm::MpiJob& job = *comm::MpiJob::current();
  return {.rank = 0, .size = job.size(), .here = job.near(), .gather_crew = [options] { return take_crew(options); }};
}

int32_t joined_threads(const EngineOptions& options) {
  const comm::MpiJob& job = *comm::MpiJob::current();
  const auto n_near = static_cast<int32_t>(job.near().size());
  const auto index = static_cast<int32_t>(std::ranges::find(job.near(), job.rank()) - job.near().begin());
  return threads_of_rank(all_threads(options), n_near, index);
}

}  // namespace candor::engine
