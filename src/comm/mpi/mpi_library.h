#pragma once
// MPI as the command carries it: a library of its own, whose bytes are opened where mpirun started this process.

#include <string>

#include "base/error.h"
#include <candor_mpi.h>

namespace candor::comm {

// The table of calls, which stays open until the process ends. One line says what to install where there is none.
Result<const candor_mpi_calls*> open_mpi();

// "call: MPI's words".
Error mpi_failure(const candor_mpi_calls& mpi, const std::string& call, int code);

}  // namespace candor::comm
