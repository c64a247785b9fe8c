// The `candor` command: parses, dispatches, and turns every outcome into an exit code.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "apps/commands/commands.h"
#include "apps/commands/mpi_start.h"
#include "apps/commands/version.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"

namespace {

constexpr const char* kFooter =
    "MODEL: a GGUF file or a folder of safetensors (left out: the shipped one). --top-k is also CANDOR_TOP_K.\n"
    "  candor run \"Once upon a time\"          a story from the shipped model";

int run(int argc, char** argv) {
  using namespace candor::apps;
  CLI::App app("Candor: an LLM inference engine that gives one answer and hides nothing.", "candor");
  app.set_version_flag("--version", version_text(), "Print the version and exit; with --json more of it");
  app.set_help_all_flag("--help-all", "Print the help with every option and exit");
  Action action;
  add_commands(app, action);
  bind_environment(app);
  group_rare_options(app);
  app.footer(kFooter);
  if (argc == 1) {
    write_out(help_of(app, false));
    return kUserInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    const bool wants_json = std::any_of(argv, argv + argc, [](std::string_view word) { return word == "--json"; });
    write_out((wants_json ? version_json() : version_text()) + "\n");
    return kDone;
  } catch (const CLI::Success& wish) {
    const auto chosen = app.get_subcommands();
    const bool shows_all = dynamic_cast<const CLI::CallForAllHelp*>(&wish) != nullptr;
    write_out(help_of(chosen.empty() ? app : *chosen.front(), shows_all));
    return kDone;
  } catch (const CLI::ParseError& error) {
    say_error(explain_parse_error(app, error));
    return kUserInput;
  }
  if (action) {
    const int code = run_on_ranks(app, action, argc, argv);
    const auto lost = lost_output();
    if (!lost) return code;
    say_error(*lost);
    return code == kDone ? kUserInput : code;
  }
  say_error("what to do? 'candor --help' lists the commands");
  return kUserInput;
}

constexpr const char* kNoMemory = "out of memory; a smaller --ctx-size or model needs less";

// Where an exception may not be thrown, memory can run out too: the JSON library's destructors take some. One line
// then, not a core dump; any other exception is our fault and ends as ever.
[[noreturn]] void on_terminate() {
  try {
    if (const auto exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    candor::apps::write_err(std::string("candor: ") + kNoMemory + "\n");
    std::_Exit(candor::apps::kUserInput);
  } catch (...) {
    std::abort();
  }
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  candor::apps::install_signal_handlers();
  std::set_terminate(on_terminate);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    candor::apps::say_error(kNoMemory);
    return candor::apps::kUserInput;
  } catch (const std::exception& error) {
    candor::apps::say_error(fmt::format("internal error: {} (please report this)", error.what()));
    return candor::apps::kOurFault;
  }
}
