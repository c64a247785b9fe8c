#include "platform/spawn_plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace candor::platform {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

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

void SpawnPlan::give_nothing_to_read(int number) {
  posix_spawn_file_actions_addopen(&actions_, number, "/dev/null", O_RDONLY, 0);
}

void SpawnPlan::close_from(int number) {
  posix_spawn_file_actions_addclosefrom_np(&actions_, number);
}

int SpawnPlan::start(const std::string& path, std::vector<std::string> arguments, std::vector<std::string> environment,
                     pid_t& pid) {
  return posix_spawn(&pid, path.c_str(), &actions_, &attributes_, pointers_to(arguments).data(),
                     pointers_to(environment).data());
}

std::vector<std::string> SpawnPlan::inherit() {
  std::vector<std::string> all;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

}  // namespace candor::platform
