#pragma once
// Processes as the system lists them, and waiting for what becomes true.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace candor::testing {

inline constexpr std::chrono::seconds kPatience{60};  // before a test counts as hanging

// That a process started and that run.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "status");
    std::string line;
    bool is_child = false;
    bool is_gone = false;
    while (std::getline(status, line)) {
      is_child = is_child || line == "PPid:\t" + std::to_string(parent);
      is_gone = is_gone || line.starts_with("State:\tZ");
    }
    if (is_child && !is_gone) children.push_back(std::stoi(name));
  }
  return children;
}

// What a process was started with: "NAME=value".
inline std::set<std::string> environment_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  std::set<std::string> variables;
  for (std::string one; std::getline(file, one, '\0');) variables.insert(one);
  return variables;
}

inline bool becomes_true(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace candor::testing
