#include "comm/shm/rank_processes.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "platform/spawn_plan.h"

namespace candor::comm {
namespace {

using std::chrono::milliseconds;

constexpr int kSegmentNumber = 3;  // the descriptor in the new process
constexpr milliseconds kPatience{3000};

// What it says goes to the error output: the other one is rank 0's.
int spawn(const std::filesystem::path& program, int segment, int32_t rank, pid_t& pid) {
  platform::SpawnPlan plan;
  plan.give_nothing_to_read(STDIN_FILENO);
  plan.give(STDERR_FILENO, STDOUT_FILENO);
  plan.give(segment, kSegmentNumber);
  plan.close_from(kSegmentNumber + 1);
  return plan.start(program.string(), {"candor", "rank", std::to_string(kSegmentNumber), std::to_string(rank)},
                    platform::SpawnPlan::inherit(), pid);
}

bool is_over(pid_t pid) {
  const pid_t found = ::waitpid(pid, nullptr, WNOHANG);
  return found == pid || (found < 0 && errno == ECHILD);
}

}  // namespace

Result<std::unique_ptr<RankProcesses>> RankProcesses::start(const std::filesystem::path& program,
                                                            Segment& segment) {
  std::unique_ptr<RankProcesses> processes(new RankProcesses);
  segment.entry(0).pid.store(::getpid());  // so that ranks notice its end even before it has come itself
  for (int32_t rank = 1; rank < segment.n_ranks(); ++rank) {
    pid_t pid = -1;
    if (const int code = spawn(program, segment.descriptor(), rank, pid); code != 0) {
      return fail(ErrorKind::kIo, "rank " + std::to_string(rank) + " cannot be started: " + program.string() + ": " +
                                      std::strerror(code));
    }
    processes->ids_.push_back(pid);
    segment.entry(rank).pid.store(pid);  // so that its end is noticed even before it has come
  }
  return processes;
}

RankProcesses::~RankProcesses() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (const pid_t pid : ids_) {
    while (!is_over(pid)) {
      if (std::chrono::steady_clock::now() > end) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        break;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
}

}  // namespace candor::comm
