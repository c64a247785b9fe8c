#pragma once
// A beam search, from the command line.

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "candor/request.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct BeamOptions {
  std::optional<int64_t> beams, n_best;
  std::optional<double> length_penalty;
  bool search_to_the_end = false;

  int32_t width() const { return static_cast<int32_t>(beams.value_or(1)); }
};

void add_beam_options(CLI::App& command, BeamOptions& options);
// Refuses what only beams know where there are none.
Result<void> ask_for_beams(const BeamOptions& options, Request& request);

}  // namespace candor::apps
