#pragma once
// Opens MPI only in a process that mpirun started. The program carries our library of MPI calls (candor_mpi.h) as bytes
// and loads it with dlopen; it links to the MPI that the machine has installed.

#include <string>

#include "base/error.h"
#include <candor_mpi.h>

namespace candor::comm {

// The table of MPI calls, valid until the process ends. Without MPI, the error says in one line what to install.
Result<const candor_mpi_calls*> open_mpi();

// "call: MPI's words".
Error mpi_failure(const candor_mpi_calls& mpi, const std::string& call, int code);

}  // namespace candor::comm
