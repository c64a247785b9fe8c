#pragma once
// The processes of the other ranks of this host: started by rank 0, and ended and waited for by it. Each is a program
// of its own that is told the segment's descriptor and its rank; a terminal's Ctrl-C is not for them.

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "comm/shm/segment.h"

namespace candor::comm {

class RankProcesses {
 public:
  // Runs `program rank DESCRIPTOR RANK` for every rank but 0.
  static Result<std::unique_ptr<RankProcesses>> start(const std::filesystem::path& program, Segment& segment);
  // Waits a while for those that end by themselves, and kills the others.
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  const std::vector<pid_t>& ids() const { return ids_; }

 private:
  RankProcesses() = default;
  std::vector<pid_t> ids_;  // of rank 1, 2, ...
};

}  // namespace candor::comm
