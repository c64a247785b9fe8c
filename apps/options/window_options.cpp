#include "apps/options/window_options.h"

#include <algorithm>

#include "apps/options/arguments.h"

namespace candor::apps {

int32_t WindowChoice::tokens_of(int32_t max_positions) const {
  return static_cast<int32_t>(std::min<int64_t>(max_positions, n_tokens.value_or(kUsualWindow)));
}

void add_window_options(CLI::App& command, WindowChoice& choice) {
  add_int(command, "--window", choice.n_tokens, 2, int64_t{1} << 24, "tokens read together (512, or the context)");
  command.add_flag("--parse-special", choice.parse_special, "control tokens written in the text become their ids");
  command.add_option("--split-at", choice.split_at, "documents stand apart at this text, and are read one by one")
      ->type_name("TEXT");
}

Result<void> check(const WindowChoice& choice) {
  if (!choice.split_at || !choice.split_at->empty()) return {};
  return fail(ErrorKind::kInvalidInput, "--split-at is empty, expected the text that stands between two documents");
}

}  // namespace candor::apps
