#pragma once
// What the command line holds, read off it: completions of the shells, the manual page and docs/options.md. Any thread.

#include <string>

namespace CLI {
class App;
}

namespace candor::apps {

// Scripts for `source` (bash), a file _candor in zsh's fpath, and fish's completions/candor.fish.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

// candor(1) in roff: what `man -l` shows.
std::string manual_page(const CLI::App& app);
// docs/options.md in Markdown.
std::string options_page(const CLI::App& app);

}  // namespace candor::apps
