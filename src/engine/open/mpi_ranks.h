#pragma once
// The ranks that mpirun started: each process joins; rank 0 then opens engines whose EngineOptions::uses_mpi, one at a
// time, and every other one follows until rank 0 leaves.

#include <optional>
#include <string>

#include "backend/ranks/rank_backend.h"
#include "base/error.h"
#include "candor/options.h"
#include "comm/mpi/mpi_place.h"
#include "engine/open/rank_places.h"
#include "platform/numa.h"

namespace candor::engine {

// What the environment tells of; nothing where this process is alone.
std::optional<comm::MpiPlace> mpirun_ranks();
// Waits until all ranks have come. command: what was started, the same everywhere. shares_memory: with ranks of its
// host.
Result<void> join_mpi(const std::string& command, bool shares_memory);
// Nothing where none joined.
std::optional<comm::MpiPlace> joined_ranks();
// The whole life of a rank but 0. An error was told to rank 0, or is rank 0's.
Result<void> follow_mpi();
// An MPI failure that only this rank knows and must report itself, in one line; nothing where rank 0 knows of it.
std::optional<std::string> own_mpi_failure(const Error& error);
// Ends every wait for a rank of this process's job, with this reason.
void lose_mpi(const std::string& why);
// Together with all others, before a process ends. False where that fails: nothing may run then but the process's end.
bool leave_mpi();

// For a backend of ranks that joined. REQUIRES: check_joined().
Result<void> check_joined(const EngineOptions& options);
backend::RankOptions joined_rank_options(const EngineOptions& options, bool can_spin);
// The places of this host's ranks, and this rank's place among them: -t counts a host's threads.
HostPlaces joined_places(const EngineOptions& options);
const platform::ProcessPlace& joined_place(const HostPlaces& host);
// Which of the ranks on this host this one is, those that share no memory included.
int32_t joined_rank_here();

}  // namespace candor::engine
