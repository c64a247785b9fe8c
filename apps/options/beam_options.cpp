#include "apps/options/beam_options.h"

#include "apps/options/arguments.h"

namespace candor::apps {

void add_beam_options(CLI::App& command, BeamOptions& options) {
  add_int(command, "--beams", options.beams, 1, kMaxBeams, "search for the likeliest text with N texts side by side");
  add_int(command, "--n-best", options.n_best, 1, kMaxBeams, "show the N best texts of the beams (1)");
  add_number(command, "--length-penalty", options.length_penalty, -10, 10, "above 0 longer texts gain (1)");
  command.add_flag("--search-to-the-end", options.search_to_the_end, "beams go on while a better text is possible");
}

Result<void> ask_for_beams(const BeamOptions& options, Request& request) {
  if (!options.beams) {
    if (!options.n_best && !options.length_penalty && !options.search_to_the_end) return {};
    return fail(ErrorKind::kInvalidInput, "--n-best, --length-penalty and --search-to-the-end need --beams N");
  }
  if (request.n > 1)
    return fail(ErrorKind::kInvalidInput,
                "--answers draws, --beams searches: --n-best N shows the N best of its texts");
  request.beams = BeamSearch{.width = options.width(),
                             .length_penalty = options.length_penalty.value_or(1.0),
                             .early_stopping = !options.search_to_the_end};
  request.n = static_cast<int32_t>(options.n_best.value_or(1));
  return {};
}

}  // namespace candor::apps
