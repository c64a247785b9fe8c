// candor explain: the steps from text to text made visible for one prompt.

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "constraint_options.h"
#include "exit_codes.h"
#include "explain_page.h"
#include "generation_options.h"
#include "model_choice.h"
#include "prompt_source.h"
#include "terminal.h"

namespace candor::apps {
namespace {

constexpr int64_t kTokensShown = 4;

struct ExplainOptions {
  GenerationOptions generation;
  ConstraintOptions constraint;
  PromptSource source;
  bool json = false;
};

int run(const ExplainOptions& options) {
  auto choice = choose_model(options.generation.model, options.source.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  PromptSource source = options.source;
  source.positionals = choice->texts;
  auto text = read_prompt(source);
  if (!text) return say_error(text.error().message), kUserInput;
  const auto tracer = Tracer::open(engine_options(options.generation, choice->model));
  if (!tracer) return say_error(tracer.error().message), exit_code(tracer.error());
  Request request;
  request.prompt = TextPrompt{std::move(*text)};
  request.sampling = sampling_params(options.generation);
  request.sampling.explain = true;
  if (!request.sampling.max_tokens) request.sampling.max_tokens = kTokensShown;
  auto constraint = read_constraint(options.constraint);
  if (!constraint) return say_error(constraint.error().message), kUserInput;
  request.constraint = std::move(*constraint);
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
  command->add_option("text", options->source.positionals, "[MODEL] PROMPT");
  command->add_option("-p,--prompt", options->source.option, "the prompt, continued as it is")->type_name("TEXT");
  command->add_option("-f,--file", options->source.file, "read the prompt from a file (- = standard input)")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "the same as one JSON object");
  add_generation_options(*command, options->generation);
  add_constraint_options(*command, options->constraint);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
