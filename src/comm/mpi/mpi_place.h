#pragma once
// Which of mpirun's ranks this process is, from the environment.

#include <cstdint>
#include <optional>

namespace candor::comm {

struct MpiPlace {
  int32_t rank = 0;
  int32_t size = 1;
  bool is_first_here = true;  // of the ranks of this host
};

// What mpirun, srun and the like told this process in its environment; nothing where nobody did, or where it is alone.
std::optional<MpiPlace> mpi_place();

}  // namespace candor::comm
