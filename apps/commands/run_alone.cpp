// The commands of `candor_run`: a cold `sh scripts/run.sh` waits for no other.

#include "apps/commands/commands.h"

namespace candor::apps {

void add_commands(CLI::App& app, Action& action) {
  add_run(app, action);
  add_rank(app, action);
}

}  // namespace candor::apps
