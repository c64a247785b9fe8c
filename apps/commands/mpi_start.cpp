#include "apps/commands/mpi_start.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "engine/open/mpi_ranks.h"
#include "platform/allocator.h"

namespace candor::apps {
namespace {

const CLI::App& chosen_of(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
}

// Commands that open models by ranks; some only calculate.
bool opens_by_ranks(const CLI::App& chosen) {
  const bool only_calculates = chosen.get_name() == "fit" || chosen.get_name() == "estimate";
  return !only_calculates && chosen.get_option_no_throw("--ranks") != nullptr;
}

std::string command_line(int argc, char** argv) {
  std::string line = "candor";
  for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
  return line;
}

bool shares_memory() {
  const char* link = std::getenv("CANDOR_RANKS_LINK");
  return link == nullptr || std::string_view(link) != "mpi";
}

// Whatever the process still holds may wait for MPI, which may not come back.
[[noreturn]] void end_at_once(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

// What others than rank 0 say themselves: what it hears nothing of.
int say_what_is_own(const Error& error) {
  if (const auto words = engine::own_mpi_failure(error)) say_error(*words);
  return exit_code(error);
}

int follow() {
  platform::give_freed_memory_back();
  const auto outcome = engine::follow_mpi();
  return outcome ? kDone : say_what_is_own(outcome.error());
}

int run_as(const comm::MpiPlace& place, const CLI::App& chosen, const Action& action, const std::string& line) {
  const CLI::Option& ranks = *chosen.get_option_no_throw("--ranks");
  if (ranks.count() > 0 && ranks.as<int32_t>() != place.size) {
    if (place.rank == 0)
      say_error(
          fmt::format("--ranks {}: mpirun started {} ranks; leave the option out", ranks.as<int32_t>(), place.size));
    return kUserInput;
  }
  if (const auto joined = engine::join_mpi(line, shares_memory()); !joined) {
    if (place.rank != 0) end_at_once(say_what_is_own(joined.error()));
    say_error(joined.error().message);
    end_at_once(exit_code(joined.error()));
  }
  const int code = place.rank == 0 ? action() : follow();
  const bool has_left = engine::leave_mpi();
  end_at_once(has_left || code != kDone ? code : kRankLost);
}

}  // namespace

int run_on_ranks(const CLI::App& app, const Action& action, int argc, char** argv) {
  const auto place = engine::mpirun_ranks();
  if (!place) return action();
  const CLI::App& chosen = chosen_of(app);
  if (opens_by_ranks(chosen)) return run_as(*place, chosen, action, command_line(argc, argv));
  return place->rank == 0 ? action() : kDone;
}

}  // namespace candor::apps
