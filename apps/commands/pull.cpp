// candor pull and candor list: models of a hub, in the cache that its own tools share.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/hub_cache.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "hub/model_cache.h"
#include "hub/pull/pull.h"

namespace candor::apps {
namespace {

int run_pull(const std::string& model) {
  const auto name = hub::parse_repo_name(model);
  if (!name) return say_error(name.error().message), kUserInput;
  hub::HubOptions options;
  options.cache_root = hub_cache_root();
  options.token = environment("HF_TOKEN");
  if (const std::string endpoint = environment("HF_ENDPOINT"); !endpoint.empty()) options.endpoint = endpoint;
  std::string current;
  std::optional<ProgressBar> bar;
  const auto progress = [&](std::string_view file, uint64_t done, uint64_t total) {
    if (file != current) {
      current = file;
      bar.emplace(current);
    }
    bar->update(done, total);
    return !interrupted();
  };
  const auto pulled = hub::pull(*name, options, progress);
  bar.reset();
  if (!pulled) {
    say_error(pulled.error().message);
    return pulled.error().kind == ErrorKind::kCancelled ? kInterrupted : kUserInput;
  }
  for (const std::string& file : pulled->repaired)
    say_warning(fmt::format("{} was damaged in the cache, and was fetched again", printable(file)));
  write_err(fmt::format("{}: {}\n", model, format_bytes(pulled->n_bytes)));
  write_out(pulled->path.string() + "\n");
  return kDone;
}

int run_list() {
  std::string out;
  for (const hub::CachedModel& model : hub::list_models(hub_cache_root())) {
    out += fmt::format("{:<40} {:>10}  {}\n", model.name, format_bytes(model.n_bytes), model.path.string());
  }
  if (out.empty()) return say_warning("no models yet: candor pull user/repo fetches one"), kDone;
  write_out(out);
  return kDone;
}

}  // namespace

void add_pull(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("pull", "fetch a model of a hub; MODEL: user/repo, or user/repo:q4_k_m for a GGUF file");
  const auto model = std::make_shared<std::string>();
  command->add_option("model", *model, "MODEL")->required();
  command->callback([model, &action] { action = [model] { return run_pull(*model); }; });
}

void add_list(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("list", "the fetched models, with their sizes and places");
  command->callback([&action] { action = run_list; });
}

}  // namespace candor::apps
