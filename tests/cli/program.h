#pragma once
// Runs the built program and keeps what it said.

#include <functional>
#include <string>
#include <vector>

namespace candor::testing {

struct RunResult {
  int exit_code = -1;  // 128 + n where signal n ended it
  std::string out;
  std::string err;
};

struct RunInput {
  std::string program = {};  // by its name or path, instead of candor
  std::string stdin_text = {};
  std::string stdout_path = {};  // instead of what the result shows
  bool close_stdin = false;
  bool close_stdout_early = false;       // the reader goes away after the first byte
  std::string interrupt_at = {};         // sends SIGINT once, when stderr holds this
  std::string hang_up_at = {};           // sends SIGHUP once, when stderr holds this
  std::function<void()> before_hang_up = {};
  int interrupt_after_ms = 0;            // sends SIGINT once, this long after the first output
  std::vector<std::string> environment = {};  // "NAME=value", added
};

// arguments: without the program's own name. A run that takes over a minute is killed.
RunResult run_candor(const std::vector<std::string>& arguments, const RunInput& input = {});

// Lines of `text`, without an empty last one.
int count_lines(const std::string& text);

}  // namespace candor::testing
