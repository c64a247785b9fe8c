#pragma once
// The sub-commands of `candor bench` that have a file of their own.

#include "apps/commands/commands.h"

namespace candor::apps {

void add_bench_serve(CLI::App& bench, Action& action);
void add_bench_drafts(CLI::App& bench, Action& action);

}  // namespace candor::apps
