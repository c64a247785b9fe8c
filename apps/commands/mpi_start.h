#pragma once
// A command that mpirun started several times: rank 0 runs it, and the others compute with it where it opens models.

#include "apps/commands/commands.h"

namespace candor::apps {

// Runs the action where this process is alone. Of the ranks that mpirun started, rank 0 runs it while the others
// follow, where the chosen command takes --ranks; other commands run on rank 0 alone. May end the process itself.
int run_on_ranks(const CLI::App& app, const Action& action, int argc, char** argv);

}  // namespace candor::apps
