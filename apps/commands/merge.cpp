// candor merge: a model with an adapter added to its weights.

#include "merge/merged_model.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "apps/commands/commands.h"
#include "apps/commands/model_writing.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "model/hub/hub_folder.h"

namespace candor::apps {
namespace {

struct MergeCommand : FileOptions {
  std::string adapter;
};

int run_merge(const MergeCommand& options) {
  const auto adapter = read_adapter(options.adapter);
  if (!adapter) return say_error(adapter.error().message), kUserInput;
  std::error_code ignored;
  if (std::filesystem::equivalent(adapter->path, options.target, ignored)) {
    return say_error(fmt::format("{} is both the adapter and the result; name another", printable(options.target))),
           kUserInput;
  }
  if (!(std::abs(adapter->scale) <= kMaxAdapterScale)) {
    return say_error(fmt::format("the adapter's scale is {}, expected at most {}", adapter->scale, kMaxAdapterScale)),
           kUserInput;
  }
  using enum merge::MergedTypes;
  const auto types = !options.type.empty() ? kF32 : is_gguf_name(options.target) ? kKept : kQuantisedAsF32;
  const auto open = [&]() -> Result<std::unique_ptr<formats::ModelFile>> {
    CANDOR_ASSIGN(auto base, model::open_model(options.source));
    return merge::merge_adapter(std::move(base), adapter->path,
                                {.scale = adapter->scale, .types = types, .n_threads = write_threads(options)});
  };
  return write_model(options, open, "merging");
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  const auto options = std::make_shared<MergeCommand>();
  CLI::App* command =
      app.add_subcommand("merge", "write a model with a LoRA adapter in its weights: RESULT.gguf, or a folder");
  command->add_option("model", options->source, "MODEL")->required();
  command->add_option("adapter", options->adapter, "PATH[:SCALE] of PEFT's folder, or of a GGUF file")->required();
  command->add_option("result", options->target, "RESULT")->required();
  command->add_option("--type", options->type, "store weights so (candor quantize --help); left out, as they are");
  command->add_option("-t,--threads", options->n_threads, "compute threads")->check(CLI::Range(1, 1024));
  command->add_flag("--force", options->force, "replace the result if it exists");
  command->callback([options, &action] { action = [options] { return run_merge(*options); }; });
}

}  // namespace candor::apps
