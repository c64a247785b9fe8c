// candor explain: the steps from text to text made visible for one prompt.

#include <memory>

#include "apps/commands/commands.h"
#include "apps/explain/page.h"
#include "apps/options/arguments.h"
#include "apps/options/beam_options.h"
#include "apps/options/constraint_options.h"
#include "apps/options/generation_options.h"
#include "apps/options/idle_options.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

constexpr int64_t kTokensShown = 4;

struct ExplainOptions {
  GenerationOptions generation;
  ConstraintOptions constraint;
  BeamOptions beams;
  PromptSource source;
  bool json = false;
};

int run(const ExplainOptions& options, const CLI::App& command) {
  auto asked = read_model_and_prompt(options.generation.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;
  EngineOptions opened = engine_options(options.generation, asked->model);
  opened.max_running = options.beams.width();
  const auto tracer = Tracer::open(opened);
  if (!tracer) return say_error(tracer.error().message), exit_code(tracer.error());
  Request request;
  request.prompt = TextPrompt{std::move(asked->text)};
  request.sampling = sampling_params(options.generation);
  request.sampling.explain = true;
  if (!request.sampling.max_tokens) request.sampling.max_tokens = kTokensShown;
  auto constraint = read_constraint(options.constraint);
  if (!constraint) return say_error(constraint.error().message), kUserInput;
  request.constraint = std::move(*constraint);
  if (auto beams = ask_for_beams(options.beams, request); !beams) return say_error(beams.error().message), kUserInput;
  request.on_context_full = context_full_action(options.generation);
  note_idle_generation(command, request);
  note_idle(command, {"--system"}, "explain continues the prompt as it is, without the chat template");
  auto trace = (*tracer)->run(request);
  if (!trace) return say_error(trace.error().message), exit_code(trace.error());
  const Engine& engine = (*tracer)->engine();
  write_out(options.json ? explain_json(engine, *trace) : explain_page(engine, *trace));
  return kDone;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("explain", "how each token of an answer comes about");
  const auto options = std::make_shared<ExplainOptions>();
  add_prompt_options(*command, options->source, "the prompt, continued as it is");
  command->add_flag("--json", options->json, "the same as one JSON object");
  add_beam_options(*command, options->beams);
  add_generation_options(*command, options->generation);
  add_constraint_options(*command, options->constraint);
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
