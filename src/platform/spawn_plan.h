#pragma once
// How a program is started: with the descriptors that it is given and no others, no signal blocked or ignored, and in a
// process group of its own, so that a terminal's Ctrl-C is not for it.

#include <spawn.h>

#include <string>
#include <vector>

namespace candor::platform {

class SpawnPlan {
 public:
  SpawnPlan();
  ~SpawnPlan();
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // In this order: what was given before may be given again.
  void give(int descriptor, int number);
  void give_nothing_to_read(int number);
  // Those from `number` on are closed.
  void close_from(int number);

  // arguments: with the program's own name first. environment: "NAME=value" each; inherit() for all that is here.
  // 0, or the system's error number.
  int start(const std::string& path, std::vector<std::string> arguments, std::vector<std::string> environment,
            pid_t& pid);
  static std::vector<std::string> inherit();

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace candor::platform
