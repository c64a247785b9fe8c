// candor run: prompt in, tokens streamed out, one line of figures at the end.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/commands/stream.h"
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

struct RunOptions {
  GenerationOptions generation;
  PromptSource source;
  ConstraintOptions constraint;
  BeamOptions beams;
  bool raw = false;
  bool json = false;
};

Prompt make_prompt(const RunOptions& options, const ModelInfo& info, std::string text) {
  if (options.raw || !info.has_chat_template) return TextPrompt{std::move(text)};
  ChatPrompt chat;
  if (options.generation.system) chat.messages.push_back({"system", *options.generation.system});
  chat.messages.push_back({"user", std::move(text)});
  return chat;
}

nlohmann::ordered_json others_json(const StreamOutcome& outcome) {
  auto list = nlohmann::ordered_json::array();
  for (const CompletedChoice& other : outcome.others) {
    list.push_back({{"text", other.text}, {"tokens", other.tokens}, {"finish_reason", to_string(other.finish)}});
    if (other.score) list.back()["score"] = *other.score;
  }
  return list;
}

std::string to_json(const StreamOutcome& outcome, const ModelInfo& info) {
  const Usage& usage = outcome.summary.usage;
  const RequestTimings& t = outcome.summary.timings;
  const LimitShares shares = shares_of_limits(outcome, info);
  const nlohmann::ordered_json json = {
      {"model", info.paths.empty() ? "" : info.paths.front().string()},
      {"text", outcome.text},
      {"tokens", outcome.tokens},
      {"finish_reason", to_string(outcome.finish)},
      {"score", outcome.score ? nlohmann::ordered_json(*outcome.score) : nlohmann::ordered_json()},
      {"others", others_json(outcome)},
      {"seed", usage.seed},
      {"fast_matrices", info.n_fast_matrices},
      {"usage",
       {{"prompt_tokens", usage.prompt_tokens},
        {"completion_tokens", usage.completion_tokens},
        {"cached_tokens", usage.cached_tokens},
        {"cropped_tokens", usage.cropped_tokens},
        {"drafted_tokens", usage.drafted_tokens},
        {"accepted_tokens", usage.accepted_tokens},
        {"token_layers", usage.token_layers}}},
      {"timings",
       {{"ttft_ms", t.ttft_ms},
        {"prefill_ms", t.prefill_ms},
        {"decode_ms", t.decode_ms},
        {"e2e_ms", t.e2e_ms},
        {"prefill_tokens_per_second", t.prefill_tokens_per_s},
        {"decode_tokens_per_second", t.decode_tokens_per_s},
        {"itl_mean_ms", t.itl_mean_ms},
        {"itl_max_ms", t.itl_max_ms}}},
      {"share_of_limit", {{"prefill_int8", shares.prefill_int8}, {"decode_dram", shares.decode_dram}}},
      {"warnings", outcome.summary.warnings}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void write_others(const StreamOutcome& outcome) {
  if (outcome.others.empty()) return;
  const Style style(STDOUT_FILENO);
  const auto rank = [&](size_t i, double score) { return style.dim(fmt::format("({}: {:.4f})", i, score)) + "\n"; };
  write_out(rank(1, outcome.score.value_or(0.0)));
  for (size_t i = 0; i < outcome.others.size(); ++i) {
    const CompletedChoice& other = outcome.others[i];
    write_out(other.text + (other.text.ends_with('\n') ? "" : "\n") + rank(i + 2, other.score.value_or(0.0)));
  }
}

int report(const RunOptions& options, const StreamOutcome& outcome, const ModelInfo& info) {
  if (outcome.reader_gone) return kDone;
  if (options.json) {
    write_out(to_json(outcome, info));
  } else {
    if (!outcome.text.ends_with('\n')) write_out("\n");
    write_others(outcome);
    for (const std::string& warning : outcome.summary.warnings) say_warning(warning);
    write_err(Style(STDERR_FILENO).dim(summary_line(outcome, info)) + "\n");
  }
  return outcome.was_interrupted ? kInterrupted : kDone;
}

int run(const RunOptions& options, const CLI::App& command) {
  auto asked = read_model_and_prompt(options.generation.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;

  int code = kDone;
  EngineOptions opened = engine_options(options.generation, asked->model);
  opened.max_running = options.beams.width();
  const auto engine = open_engine(opened, code);
  if (!engine) return code;
  if (options.generation.system && (options.raw || !engine->info().has_chat_template))
    say_warning("--system has no effect: the prompt goes in as it is (no chat template)");

  Request request;
  request.prompt = make_prompt(options, engine->info(), std::move(asked->text));
  request.sampling = sampling_params(options.generation);
  auto constraint = read_constraint(options.constraint);
  if (!constraint) return say_error(constraint.error().message), kUserInput;
  request.constraint = std::move(*constraint);
  if (auto beams = ask_for_beams(options.beams, request); !beams) return say_error(beams.error().message), kUserInput;
  request.on_context_full = context_full_action(options.generation);
  note_idle_generation(command, request);
  const auto write = [&options](std::string_view piece) { return options.json || write_out(piece); };
  auto outcome = stream_request(*engine, request, write);
  if (!outcome) return say_error(outcome.error().message), exit_code(outcome.error());
  return report(options, *outcome, engine->info());
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "prompt in, tokens streamed out");
  const auto options = std::make_shared<RunOptions>();
  add_prompt_options(*command, options->source, "the prompt");
  add_beam_options(*command, options->beams);
  command->add_flag("--raw", options->raw, "continue the text as it is, without the chat template");
  command->add_flag("--json", options->json, "one JSON object instead of the stream");
  add_generation_options(*command, options->generation);
  add_constraint_options(*command, options->constraint);
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
