#include "platform/spawn_plan.h"

#include <fcntl.h>

#include <csignal>

namespace candor::platform {

SpawnPlan::SpawnPlan() {
  posix_spawn_file_actions_init(&actions_);
  posix_spawnattr_init(&attributes_);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes_, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&attributes_, &signals);
  posix_spawnattr_setpgroup(&attributes_, 0);
  posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

SpawnPlan::~SpawnPlan() {
  posix_spawn_file_actions_destroy(&actions_);
  posix_spawnattr_destroy(&attributes_);
}

void SpawnPlan::give(int descriptor, int number) {
  posix_spawn_file_actions_adddup2(&actions_, descriptor, number);
}

void SpawnPlan::open(const char* path, int number) {
  posix_spawn_file_actions_addopen(&actions_, number, path, O_RDONLY, 0);
}

void SpawnPlan::close_from(int number) {
  posix_spawn_file_actions_addclosefrom_np(&actions_, number);
}

int SpawnPlan::start(const char* program, char* const* arguments, char* const* environment, pid_t& pid) const {
  return posix_spawn(&pid, program, &actions_, &attributes_, arguments, environment);
}

}  // namespace candor::platform
