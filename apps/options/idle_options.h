#pragma once
// Options that were given and change nothing beside others: each is named on stderr, with the reason.

#include <initializer_list>
#include <string_view>

#include "candor/request.h"

namespace CLI {
class App;
}

namespace candor::apps {

// Those of the names (the command's own, "--top-k") that were given.
void note_idle(const CLI::App& command, std::initializer_list<const char*> names, std::string_view reason);

// Those of the numbers of sampling, where a token is drawn or, at temperature 0, taken.
void note_idle_sampling(const CLI::App& command, const SamplingParams& sampling);
// Random numbers decide something.
bool draws(const Request& request);

// The rules of the options of generation (generation_options.h, constraint_options.h) for this request.
void note_idle_generation(const CLI::App& command, const Request& request);

}  // namespace candor::apps
