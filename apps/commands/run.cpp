// candor run: prompt in, tokens streamed out, one line of figures at the end.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/commands/receipt_output.h"
#include "apps/commands/stream.h"
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
#include "candor/drafts.h"
#include "candor/engine.h"

namespace candor::apps {
namespace {

struct RunOptions {
  GenerationOptions generation;
  PromptSource source;
  ConstraintOptions constraint;
  BeamOptions beams;
  std::vector<std::string> images;
  ReceiptOutput receipt;
  bool json = false;
};

using Json = nlohmann::ordered_json;

Json logprob_json(const Engine& engine, const TokenLogprob& one) {
  return {{"token", one.token}, {"piece", engine.piece(one.token)}, {"logprob", one.logprob}};
}

Json logprobs_json(const Engine& engine, const CompletedChoice& answer) {
  Json list = Json::array();
  for (size_t i = 0; i < answer.logprobs.size(); ++i) {
    Json token = logprob_json(engine, answer.logprobs[i]);
    token["top"] = Json::array();
    for (const TokenLogprob& top : answer.top_logprobs[i]) token["top"].push_back(logprob_json(engine, top));
    list.push_back(std::move(token));
  }
  return list;
}

Json others_json(const Engine& engine, const StreamOutcome& outcome) {
  Json list = Json::array();
  for (const CompletedChoice& other : outcome.others) {
    list.push_back({{"text", other.text}, {"tokens", other.tokens}, {"finish_reason", to_string(other.finish)}});
    if (other.score) list.back()["score"] = *other.score;
    if (!other.logprobs.empty()) list.back()["logprobs"] = logprobs_json(engine, other);
  }
  return list;
}

Json timings_json(const RequestTimings& t) {
  return {{"ttft_ms", t.ttft_ms},
          {"queue_ms", t.queue_ms},
          {"images_ms", t.images_ms},
          {"template_ms", t.template_ms},
          {"tokenize_ms", t.tokenize_ms},
          {"prefill_ms", t.prefill_ms},
          {"decode_ms", t.decode_ms},
          {"e2e_ms", t.e2e_ms},
          {"prefill_tokens_per_second", t.prefill_tokens_per_s},
          {"decode_tokens_per_second", t.decode_tokens_per_s},
          {"itl_mean_ms", t.itl_mean_ms},
          {"itl_max_ms", t.itl_max_ms}};
}

// By who drafted. The gain is by the costs in effect: tokens for the time, as a ratio to those without drafts.
Json run_drafts_json(const DraftUsages& drafts) {
  Json json = Json::object();
  for (size_t i = 0; i < kDraftSources; ++i) {
    const DraftUsage& usage = drafts[i];
    if (usage.n_steps == 0) continue;
    json[to_string(static_cast<DraftSource>(i))] = {{"steps", usage.n_steps},
                                                    {"drafted_tokens", usage.drafted_tokens},
                                                    {"accepted_tokens", usage.accepted_tokens},
                                                    {"gain", usage.gain()}};
  }
  return json;
}

std::string to_json(const StreamOutcome& outcome, const Engine& engine) {
  const ModelInfo& info = engine.info();
  const Usage& usage = outcome.summary.usage;
  const LimitShares shares = shares_of_limits(outcome, info);
  Json json = {
      {"model", info.paths.empty() ? "" : info.paths.front().string()},
      {"text", outcome.text},
      {"tokens", outcome.tokens},
      {"finish_reason", to_string(outcome.finish)},
      {"score", outcome.score ? Json(*outcome.score) : Json()},
      {"others", others_json(engine, outcome)},
      {"seed", outcome.was_drawn ? Json(usage.seed) : Json()},
      {"fast_matrices", info.n_fast_matrices},
      {"usage",
       {{"prompt_tokens", usage.prompt_tokens},
        {"completion_tokens", usage.completion_tokens},
        {"cached_tokens", usage.cached_tokens},
        {"disk_tokens", usage.disk_tokens},
        {"cropped_tokens", usage.cropped_tokens},
        {"drafted_tokens", usage.drafted_tokens},
        {"accepted_tokens", usage.accepted_tokens},
        {"drafts", run_drafts_json(usage.drafts)},
        {"token_layers", usage.token_layers}}},
      {"timings", timings_json(outcome.summary.timings)},
      {"share_of_limit", {{"prefill_" + info.arithmetic, shares.prefill}, {"decode_dram", shares.decode_dram}}},
      {"warnings", outcome.summary.warnings}};
  if (!outcome.logprobs.empty()) json["logprobs"] = logprobs_json(engine, outcome);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int report(const RunOptions& options, const StreamOutcome& outcome, const Engine& engine) {
  const ModelInfo& info = engine.info();
  if (outcome.reader_gone) return kDone;
  if (options.json) {
    write_out(to_json(outcome, engine));
  } else {
    write_out(rest_of_answers(engine, outcome));
    for (const std::string& warning : outcome.summary.warnings) say_warning(warning);
    write_err(Style(STDERR_FILENO).dim(summary_line(outcome, info)) + "\n");
  }
  return outcome.was_interrupted ? kInterrupted : kDone;
}

int run(const RunOptions& options, const CLI::App& command) {
  auto asked = read_model_and_prompt(options.generation.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;

  const auto key = receipt_key(options.receipt);
  if (!key) return say_error(key.error().message), kUserInput;
  int code = kDone;
  EngineOptions opened = engine_options(options.generation, asked->model);
  opened.max_running = std::max(opened.max_running, options.beams.width());
  const auto engine = open_engine(opened, code);
  if (!engine) return code;

  Request request;
  request.prompt = make_prompt(options.generation, engine->info(), std::move(asked->text));
  if (auto added = put_images(options.images, request.prompt); !added)
    return say_error(added.error().message), kUserInput;
  request.sampling = sampling_params(options.generation);
  request.adapters = all_adapters(options.generation.adapters);
  auto constraint = read_constraint(options.constraint);
  if (!constraint) return say_error(constraint.error().message), kUserInput;
  request.constraint = std::move(*constraint);
  request.n = static_cast<int32_t>(options.generation.n_answers.value_or(1));
  if (auto beams = ask_for_beams(options.beams, request); !beams) return say_error(beams.error().message), kUserInput;
  request.on_context_full = context_full_action(options.generation);
  request.receipt = options.receipt.file.has_value();
  note_idle_generation(command, request);
  const auto write = [&options](std::string_view piece) { return options.json || write_out(piece); };
  auto outcome = stream_request(*engine, request, write);
  if (!outcome) return say_error(outcome.error().message), exit_code(outcome.error());
  code = report(options, *outcome, *engine);
  const auto written = write_receipt(options.receipt, *key, outcome->summary);
  return written ? code : (say_error(written.error().message), exit_code(written.error()));
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "prompt in, tokens streamed out");
  const auto options = std::make_shared<RunOptions>();
  add_prompt_options(*command, options->source, "the prompt");
  add_images(*command, options->images);
  add_beam_options(*command, options->beams);
  add_raw(*command, options->generation);
  add_answer_options(*command, options->generation);
  command->add_flag("--json", options->json, "one JSON object instead of the stream");
  add_generation_options(*command, options->generation);
  add_ranks(*command, options->generation.n_ranks);
  add_disk_cache(*command, options->generation.disk_cache);
  add_constraint_options(*command, options->constraint);
  add_receipt_output(*command, options->receipt);
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
