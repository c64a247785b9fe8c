#pragma once
// Finds out which ranks of this host have not started yet. MPI_Init waits for all ranks and does not say which are
// missing, so this is asked before it. Each rank binds an abstract Unix socket named after the job and its rank; the
// system removes the name when the process ends.

#include <cstdint>
#include <string>
#include <vector>

namespace candor::comm {

class RollCall {
 public:
  // job: the same of all ranks of one mpirun.
  RollCall(std::string job, int32_t rank);
  ~RollCall();
  RollCall(const RollCall&) = delete;
  RollCall& operator=(const RollCall&) = delete;

  // Of `size` ranks, those that are not on this host now.
  std::vector<int32_t> missing(int32_t size) const;

 private:
  std::string job_;
  int32_t rank_;
  int socket_;
};

// Names this process's mpirun.
std::string mpirun_job();

}  // namespace candor::comm
