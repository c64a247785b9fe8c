#include "platform/spawn_plan.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace candor::platform {
namespace {

// What a shell command wrote to a pipe that it was given as its output.
std::string output_of(const std::string& command, std::vector<std::string> environment) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  SpawnPlan plan;
  plan.give_nothing_to_read(STDIN_FILENO);
  plan.give(ends[1], STDOUT_FILENO);
  plan.close_from(STDERR_FILENO + 1);
  pid_t pid = -1;
  EXPECT_EQ(plan.start("/bin/sh", {"sh", "-c", command}, std::move(environment), pid), 0);
  ::close(ends[1]);
  std::string output;
  std::array<char, 256> bytes{};
  for (ssize_t n = 0; (n = ::read(ends[0], bytes.data(), bytes.size())) > 0;)
    output.append(bytes.data(), static_cast<size_t>(n));
  ::close(ends[0]);
  ::waitpid(pid, nullptr, 0);
  return output;
}

TEST(spawn_plan, a_program_has_what_it_is_given_and_nothing_else) {
  EXPECT_EQ(output_of("cat; echo \"$ONE-$TWO\"", {"ONE=1"}), "1-\n");
  EXPECT_EQ(output_of("read -r pid name state parent group rest < /proc/$$/stat; [ $group -eq $$ ] && echo own", {}),
            "own\n");
  EXPECT_EQ(output_of("if (: >&7) 2>/dev/null; then echo open; else echo closed; fi", {}), "closed\n");
}

TEST(spawn_plan, signals_that_are_ignored_here_are_not_there) {
  const auto before = ::signal(SIGTERM, SIG_IGN);
  EXPECT_EQ(output_of("kill -TERM $$; echo survived", {}), "");
  ::signal(SIGTERM, before);
}

TEST(spawn_plan, what_is_no_program_is_an_error_number) {
  SpawnPlan plan;
  pid_t pid = -1;
  EXPECT_EQ(plan.start("/nonexistent", {"x"}, {}, pid), ENOENT);
}

}  // namespace
}  // namespace candor::platform
