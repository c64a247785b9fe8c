#include "comm/mpi/roll_call.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace candor::comm {
namespace {

// Binds a socket to a rank's name; -1 with EADDRINUSE where that rank is here.
int hold_name(const std::string& job, int32_t rank) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "candor-mpi-" + job + "-" + std::to_string(rank);
  const size_t n = name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);  // abstract: behind a zero
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
}

}  // namespace

RollCall::RollCall(std::string job, int32_t rank) : job_(std::move(job)), rank_(rank), socket_(hold_name(job_, rank)) {}

RollCall::~RollCall() {
  if (socket_ >= 0) ::close(socket_);
}

std::vector<int32_t> RollCall::missing(int32_t size) const {
  std::vector<int32_t> names;
  for (int32_t rank = 0; rank < size; ++rank) {
    if (rank == rank_) continue;
    const int socket = hold_name(job_, rank);
    if (socket < 0) continue;
    ::close(socket);
    names.push_back(rank);
  }
  return names;
}

std::string mpirun_job() {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID"}) {
    if (const char* job = std::getenv(name)) return job;
  }
  return std::to_string(::getppid());
}

}  // namespace candor::comm
