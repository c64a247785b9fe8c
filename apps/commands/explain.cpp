// candor explain: the steps from text to text made visible for one prompt.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/explain/inside.h"
#include "apps/explain/page.h"
#include "apps/explain/tokens.h"
#include "apps/explain/trace.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/beam_options.h"
#include "apps/options/constraint_options.h"
#include "apps/options/generation_options.h"
#include "apps/options/idle_options.h"
#include "apps/options/image_files.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "candor/engine.h"

namespace candor::apps {
namespace {

constexpr int64_t kTokensShown = 4;

struct ExplainOptions {
  GenerationOptions generation;
  ConstraintOptions constraint;
  BeamOptions beams;
  PromptSource source;
  std::vector<std::string> images;
  std::string level = "full";
  InsideWish inside;
  bool operations = false;
  bool json = false;
};

// Of the first answer alone.
std::vector<TokenId> answer_of(const Trace& trace) {
  std::vector<TokenId> tokens;
  for (const TokenEvent& event : trace.events) {
    if (event.choice == 0 && event.token >= 0) tokens.push_back(event.token);
  }
  return tokens;
}

Result<Request> read_request(const ExplainOptions& options, const ModelInfo& info, std::string text) {
  Request request;
  request.prompt = make_prompt(options.generation, info, std::move(text));
  CANDOR_TRY(put_images(options.images, request.prompt));
  request.sampling = sampling_params(options.generation);
  request.adapters = all_adapters(options.generation.adapters);
  request.sampling.explain = true;
  request.sampling.attention = options.inside.attention && !options.images.empty();
  request.sampling.logprobs = 0;
  if (!request.sampling.max_tokens) request.sampling.max_tokens = kTokensShown;
  CANDOR_ASSIGN(request.constraint, read_constraint(options.constraint));
  CANDOR_TRY(ask_for_beams(options.beams, request));
  request.on_context_full = context_full_action(options.generation);
  return request;
}

// The reference reads tokens alone.
Result<void> check_images(const ExplainOptions& options) {
  if (options.images.empty() || !options.inside.layers) return {};
  return fail(ErrorKind::kInvalidInput, "--layers shows texts without images: leave --image or --layers out");
}

int run(const ExplainOptions& options, const CLI::App& command) {
  if (const auto fits = check_images(options); !fits) return say_error(fits.error().message), kUserInput;
  auto asked = read_model_and_prompt(options.generation.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;
  EngineOptions opened = engine_options(options.generation, asked->model);
  opened.max_running = options.beams.width();
  const auto tracer = Tracer::open(opened);
  if (!tracer) return say_error(tracer.error().message), exit_code(tracer.error());
  if (options.operations) (*tracer)->record_operations();
  const Engine& engine = (*tracer)->engine();
  const auto request = read_request(options, engine.info(), std::move(asked->text));
  if (!request) return say_error(request.error().message), kUserInput;
  note_idle_generation(command, *request);
  if (options.json) note_idle(command, {"--level"}, "--json shows everything");
  auto trace = (*tracer)->run(*request);
  if (!trace) return say_error(trace.error().message), exit_code(trace.error());
  PageWish wish{.sampling = request->sampling, .level = options.level == "brief" ? Level::kBrief : Level::kFull};
  const bool looks_inside = options.inside.is_any() && options.images.empty();
  if (const auto answer = answer_of(*trace); looks_inside && !answer.empty()) {
    auto inside = look_inside(opened, trace->prompt, answer, options.inside);
    if (!inside) return say_error(inside.error().message), exit_code(inside.error());
    wish.inside = std::move(*inside);
  }
  write_out(options.json ? explain_json(engine, *trace, wish) : explain_page(engine, *trace, wish));
  return kDone;
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("explain", "how each token of an answer comes about");
  const auto options = std::make_shared<ExplainOptions>();
  add_prompt_options(*command, options->source, "the prompt");
  add_raw(*command, options->generation);
  add_images(*command, options->images);
  add_choice(*command, "--level", options->level, {"brief", "full"}, "brief: one line a token");
  command->add_flag("--attention", options->inside.attention,
                    "where each head looks, by the reference; in images, which patches");
  command->add_flag("--layers", options->inside.layers, "the likeliest token behind each layer, by the reference");
  command->add_flag("--operations", options->operations,
                    "every operation of the last step: what it reads, writes and weighs");
  command->add_flag("--json", options->json, "the same as one JSON object");
  add_beam_options(*command, options->beams);
  add_generation_options(*command, options->generation);
  add_constraint_options(*command, options->constraint);
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
