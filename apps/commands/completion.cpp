// candor completion: scripts for shells, and the manual page, made of the command line itself.

#include "apps/options/completion.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "apps/commands/commands.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

int write_completion(const CLI::App& app, const std::string& what) {
  if (what == "bash") write_out(bash_completion(app));
  if (what == "zsh") write_out(zsh_completion(app));
  if (what == "fish") write_out(fish_completion(app));
  if (what == "man") write_out(manual_page(app));
  if (what == "markdown") write_out(options_page(app));
  return kDone;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("completion", "completions for a shell, or the manual page");
  const auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "bash|zsh|fish|man|markdown")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man", "markdown"}));
  command->callback([what, &app, &action] { action = [what, &app] { return write_completion(app, *what); }; });
}

}  // namespace candor::apps
