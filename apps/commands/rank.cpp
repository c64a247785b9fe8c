// candor rank: a process that rank 0 starts, which computes its part of a model until rank 0 ends. Nobody types it.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>

#include "apps/commands/commands.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "engine/open/rank_group.h"
#include "platform/allocator.h"

namespace candor::apps {
namespace {

struct RankPlace {
  int descriptor = 0;
  int32_t rank = 0;
};

// What rank 0 is told is said there.
int follow(const RankPlace& place) {
  platform::give_freed_memory_back();
  const engine::RankEnd end = engine::serve_as_rank(place.descriptor, place.rank);
  if (end.outcome) return kDone;
  if (!end.is_reported) say_error(end.outcome.error().message);
  return exit_code(end.outcome.error());
}

}  // namespace

void add_rank(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("rank", "a part of a model; started by --ranks");
  command->group("");
  const auto place = std::make_shared<RankPlace>();
  command->add_option("descriptor", place->descriptor, "of the memory that the ranks share")->required();
  command->add_option("number", place->rank, "of this rank")->required();
  command->callback([place, &action] { action = [place] { return follow(*place); }; });
}

}  // namespace candor::apps
