#pragma once
// Starts the processes of the other ranks of this host, and at the end waits for them or kills them; rank 0 owns it.
// Each is a program of its own that gets the segment's descriptor and its rank; a terminal's Ctrl-C does not reach
// them.

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
