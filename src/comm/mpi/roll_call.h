#pragma once
// Which ranks of a host have come before MPI says anything: MPI starts only when all have, and names nobody. Each holds
// a name of the system's own (an abstract socket), which goes with its process.

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
