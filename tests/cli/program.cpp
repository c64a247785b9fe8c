#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>

namespace candor::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::seconds(60);

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read_end = ends[0];
    write_end = ends[1];
  }
};

[[noreturn]] void become_candor(const std::vector<std::string>& arguments, const RunInput& input, const Pipe* pipes) {
  if (input.close_stdin) {
    ::close(STDIN_FILENO);
  } else {
    ::dup2(pipes[0].read_end, STDIN_FILENO);
  }
  const int file = input.stdout_path.empty() ? -1 : ::open(input.stdout_path.c_str(), O_WRONLY | O_CLOEXEC);
  ::dup2(file >= 0 ? file : pipes[1].write_end, STDOUT_FILENO);
  ::dup2(pipes[2].write_end, STDERR_FILENO);
  for (const std::string& variable : input.environment) ::putenv(const_cast<char*>(variable.c_str()));
  const char* program = input.program.empty() ? CANDOR_PROGRAM : input.program.c_str();
  std::vector<char*> argv = {const_cast<char*>(program)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execvp(program, argv.data());
  ::_exit(126);
}

void feed(int fd, const std::string& text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<size_t>(n);
  }
  ::close(fd);
}

// Reads what is there; false at the end of the stream.
bool drain(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  return n > 0;
}

void collect(pid_t child, int out, int err, const RunInput& input, RunResult& result) {
  const auto deadline = Clock::now() + kLimit;
  auto interrupt_at = Clock::time_point::max();
  bool waits_for_text = !input.interrupt_at.empty();
  bool waits_to_hang_up = !input.hang_up_at.empty();
  pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    ::poll(fds, 2, 20);
    const auto now = Clock::now();
    if (now > deadline) ::kill(child, SIGKILL);
    if (now >= interrupt_at) {
      ::kill(child, SIGINT);
      interrupt_at = Clock::time_point::max();
    }
    if ((fds[0].revents & (POLLIN | POLLHUP)) != 0) {
      const bool first = result.out.empty();
      if (!drain(fds[0].fd, result.out) || input.close_stdout_early) {
        ::close(fds[0].fd);
        fds[0].fd = -1;
      }
      if (first && input.interrupt_after_ms > 0)
        interrupt_at = now + std::chrono::milliseconds(input.interrupt_after_ms);
    }
    if ((fds[1].revents & (POLLIN | POLLHUP)) != 0 && !drain(fds[1].fd, result.err)) fds[1].fd = -1;
    fds[0].revents = fds[1].revents = 0;
    if (waits_to_hang_up && result.err.find(input.hang_up_at) != std::string::npos) {
      waits_to_hang_up = false;
      if (input.before_hang_up) input.before_hang_up();
      ::kill(child, SIGHUP);
    }
    if (waits_for_text && result.err.find(input.interrupt_at) != std::string::npos) {
      waits_for_text = false;
      ::kill(child, SIGINT);
    }
  }
}

}  // namespace

RunResult run_candor(const std::vector<std::string>& arguments, const RunInput& input) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipes[3];
  const pid_t child = ::fork();
  if (child == 0) become_candor(arguments, input, pipes);
  ::close(pipes[0].read_end);
  ::close(pipes[1].write_end);
  ::close(pipes[2].write_end);
  feed(pipes[0].write_end, input.stdin_text);
  RunResult result;
  collect(child, pipes[1].read_end, pipes[2].read_end, input, result);
  ::close(pipes[2].read_end);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

int count_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace candor::testing
