#pragma once
// How a new process of ours begins: with the descriptors that it is given, no signal blocked or ignored, and in a
// process group of its own, so that a terminal's Ctrl-C is not for it. One thread.

#include <spawn.h>
#include <sys/types.h>

namespace candor::platform {

class SpawnPlan {
 public:
  SpawnPlan();
  ~SpawnPlan();
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // What the process has as descriptor `number`: one of ours, or a file to read. Done in the order of the calls.
  void give(int descriptor, int number);
  void open(const char* path, int number);
  // Of ours, none from `number` on is left to it.
  void close_from(int number);

  // 0, or the number of the error. Both lists end with nullptr.
  int start(const char* program, char* const* arguments, char* const* environment, pid_t& pid) const;

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace candor::platform
