#include "engine/open/mpi_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.h"
#include "comm/mpi/mpi_job.h"
#include "engine/open/rank_group.h"
#include "platform/affinity.h"

namespace candor::engine {
namespace {

Result<backend::RankGroup> take_group(EngineOptions options, bool can_spin) {
  comm::MpiJob& job = *comm::MpiJob::current();
  CANDOR_ASSIGN(std::unique_ptr<comm::Communicator> comm, job.take());
  CANDOR_TRY(share_options(options, *comm));
  job.set_spin(can_spin);
  return backend::RankGroup{nullptr, std::move(comm)};
}

Result<void> follow_one(const EngineOptions& options, comm::MpiJob& job) {
  const platform::ScopedPlace keep;
  CANDOR_ASSIGN(std::unique_ptr<comm::Communicator> comm, job.take());
  const HostPlaces places = joined_places(options);
  job.set_spin(places.can_spin);
  return follow_at(joined_place(places), options, job.rank(), std::move(comm));
}

// mpirun binds a rank to one core where nobody asks it for something else, so that a rank had one thread.
void undo_unasked_binding() {
  if (std::getenv("OMPI_MCA_orte_bound_at_launch") == nullptr) return;
  if (std::getenv("OMPI_MCA_hwloc_base_binding_policy") != nullptr) return;
  platform::run_on(platform::cpus_of_process(::getppid()));
}

}  // namespace

std::optional<comm::MpiPlace> mpirun_ranks() {
  return comm::mpi_place();
}

Result<void> join_mpi(const std::string& command, bool shares_memory) {
  undo_unasked_binding();
  auto job = comm::MpiJob::join({.command = command, .shares_memory = shares_memory});
  return job ? Result<void>{} : Result<void>{job.error()};
}

std::optional<comm::MpiPlace> joined_ranks() {
  const comm::MpiJob* job = comm::MpiJob::current();
  if (job == nullptr) return std::nullopt;
  return comm::MpiPlace{job->rank(), job->size()};
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

// Where the library does not open, it opens for none of a host's ranks: one of them speaks.
std::optional<std::string> own_mpi_failure(const Error& error) {
  comm::MpiJob* job = comm::MpiJob::current();
  const auto place = comm::mpi_place();
  if (!place || !(job == nullptr ? place->is_first_here : job->has_failed_here())) return std::nullopt;
  std::array<char, 64> host{};
  ::gethostname(host.data(), host.size() - 1);
  return "rank " + std::to_string(place->rank) + " (host " + host.data() + "): " + error.message;
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

backend::RankOptions joined_rank_options(const EngineOptions& options, bool can_spin) {
  const comm::MpiJob& job = *comm::MpiJob::current();
  return {.rank = 0, .size = job.size(), .here = job.near(), .gather_group = [options, can_spin] {
            return take_group(options, can_spin);
          }};
}

// What carries bytes to other hosts wants a processor as well, and ranks that share no memory have threads too.
HostPlaces joined_places(const EngineOptions& options) {
  const comm::MpiJob& job = *comm::MpiJob::current();
  const auto n_near = static_cast<int32_t>(job.near().size());
  const int32_t n_strange = (job.n_beside() - n_near) * std::max(1, all_threads(options) / n_near);
  return place_ranks(options, n_near, n_strange + (job.has_far() ? job.n_beside() : 0));
}

const platform::ProcessPlace& joined_place(const HostPlaces& host) {
  const comm::MpiJob& job = *comm::MpiJob::current();
  return host.places.at(static_cast<size_t>(std::ranges::find(job.near(), job.rank()) - job.near().begin()));
}

int32_t joined_rank_here() {
  return comm::MpiJob::current()->rank_beside();
}

}  // namespace candor::engine
