// candor health: whether a server answers, for containers and scripts.

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "apps/commands/commands.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "net/http_client.h"

namespace candor::apps {
namespace {

int ask(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  client::HttpClient client;
  const auto drop = [](int, std::string_view) -> Result<void> { return {}; };
  const auto status = client.fetch({.url = url + "/health"}, drop);
  if (!status) {
    say_error(fmt::format("{}: {}", url, status.error().message));
    return kUserInput;
  }
  if (*status == 200) {
    write_out("healthy\n");
    return kDone;
  }
  say_error(fmt::format("{}: not healthy (status {})", url, *status));
  return kUserInput;
}

}  // namespace

void add_health(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("health", "whether a server is well: exit 0 if so");
  const auto url = std::make_shared<std::string>("http://127.0.0.1:8080");
  command->add_option("url", *url, "[URL]");
  command->callback([url, &action] { action = [url] { return ask(*url); }; });
}

}  // namespace candor::apps
