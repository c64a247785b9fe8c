#pragma once
// MPI as the command carries it: a library of its own, whose bytes are opened where mpirun started this process.

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include <candor_mpi.h>

namespace candor::comm {

// What mpirun, srun and the like told this process in its environment; nothing where nobody did, or where it is alone.
struct MpiPlace {
  int32_t rank = 0;
  int32_t size = 1;
};
std::optional<MpiPlace> mpi_place();

// The table of calls, which stays open until the process ends. One line says what to install where there is none.
Result<const candor_mpi_calls*> open_mpi();

// "call: MPI's words".
Error mpi_failure(const candor_mpi_calls& mpi, const std::string& call, int code);

}  // namespace candor::comm
