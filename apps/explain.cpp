// candor explain: the steps from text to text made visible for one prompt.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "commands.h"
#include "constraint_options.h"
#include "exit_codes.h"
#include "generation_options.h"
#include "machine_limits.h"
#include "model_choice.h"
#include "prompt_source.h"
#include "terminal.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kTokensShown = 4;

struct ExplainOptions {
  GenerationOptions generation;
  ConstraintOptions constraint;
  PromptSource source;
  bool json = false;
};

struct Trace {
  std::vector<TokenId> prompt;
  std::vector<TokenEvent> events;
  RequestSummary summary;
};

Result<Trace> run_traced(Engine& engine, const Request& request) {
  Trace trace;
  auto prompt = engine.tokenize(request.prompt);
  if (!prompt) return prompt.error();
  trace.prompt = std::move(*prompt);
  const auto keep = [&trace](const TokenEvent& event) { trace.events.push_back(event); };
  auto completion = engine.generate(request, keep);
  if (!completion) return completion.error();
  trace.summary = std::move(completion->summary);
  return trace;
}

std::string shown_piece(const Engine& engine, TokenId token) {
  return printable(engine.piece(token));
}

std::string bar(double share) {
  constexpr int kWidth = 24;
  return std::string(static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kWidth + 0.5), '#');
}

class Page {
 public:
  Page(const Engine& engine, uint64_t seed) : engine_(engine), seed_(seed) {}

  void show(const Trace& trace) {
    show_prompt(trace);
    show_model(trace);
    show_time(trace);
    for (size_t i = 0; i < trace.events.size(); ++i) show_token(i, trace.events[i]);
    write_out(out_);
  }

 private:
  void heading(int step, std::string_view title) { out_ += style_.bold(fmt::format("{} {}", step, title)) + "\n"; }

  void show_prompt(const Trace& trace) {
    const ModelInfo& info = engine_.info();
    heading(1, fmt::format("text to tokens: {}, a vocabulary of {}", info.tokenizer, format_count(info.n_vocab)));
    std::string line = " ";
    for (const TokenId token : trace.prompt) {
      const std::string piece = fmt::format(" {}:{}", token, shown_piece(engine_, token));
      if (line.size() + piece.size() > 110) {
        out_ += line + "\n";
        line = " ";
      }
      line += piece;
    }
    out_ += line + "\n";
  }

  void show_model(const Trace& trace) {
    const ModelInfo& info = engine_.info();
    const size_t n = trace.prompt.size();
    heading(2, "tokens to vectors");
    out_ += fmt::format("  embedding: {} tokens x {} = {}\n", n, info.dim,
                        format_count(static_cast<int64_t>(n) * info.dim));
    heading(3, fmt::format("{} layers: attention over what came before, feed-forward, residuals", info.n_layers));
    out_ += fmt::format("  {} x {} x {} ({} parameters, {} of weights, {})\n", info.n_layers, n, info.dim,
                        format_count(info.n_parameters), format_bytes(info.weight_bytes), info.backend_description);
    out_ += fmt::format("  K/V cache: {} blocks of {} tokens in {}, {}; {} of the prompt's tokens were there\n",
                        info.kv_blocks, info.kv_block_tokens, info.kv_type, format_bytes(info.kv_bytes),
                        trace.summary.usage.cached_tokens);
    heading(4, fmt::format("the last vector to {} logits", format_count(info.n_vocab)));
  }

  void show_time(const Trace& trace) {
    const RequestTimings& t = trace.summary.timings;
    const ModelInfo& info = engine_.info();
    heading(5, "where the time went");
    out_ += fmt::format("  prefill {} for {} tokens ({:.0f} tokens/s), decode {} a token ({:.0f} tokens/s)\n",
                        format_ms(t.prefill_ms), trace.summary.usage.prompt_tokens, t.prefill_tokens_per_s,
                        format_ms(t.itl_mean_ms), t.decode_tokens_per_s);
    const double bytes_per_s = static_cast<double>(info.weight_bytes) * t.decode_tokens_per_s;
    const auto limits = known_limits(info.n_threads);
    if (bytes_per_s <= 0.0) return;
    out_ += fmt::format("  decode reads the weights once a token: {:.2f} GB/s", bytes_per_s / 1e9);
    if (limits && limits->dram_read_bytes > 0.0)
      out_ +=
          fmt::format(", {:.0f} % of what this machine's memory gives", 100.0 * bytes_per_s / limits->dram_read_bytes);
    out_ += "\n";
  }

  void show_token(size_t i, const TokenEvent& event) {
    if (!event.explanation) return;
    const TokenExplanation& explanation = *event.explanation;
    heading(6, fmt::format("token {}: from logits to one", i + 1));
    for (const StageView& stage : explanation.stages) show_stage(stage, event.token);
    heading(7, "the choice");
    out_ += explanation.was_drawn ? fmt::format("  {:.6f} was drawn with seed {}", explanation.draw, seed_)
                                  : "  the best is taken";
    out_ += fmt::format(": {} {}", event.token, style_.green(shown_piece(engine_, event.token)));
    if (explanation.guess >= 0)
      out_ += fmt::format(" (guessed {}: {})", shown_piece(engine_, explanation.guess),
                          explanation.guess == event.token ? "right, so that the next row was free" : "wrong");
    out_ += "\n";
    heading(8, fmt::format("token to text: \"{}\"", printable(event.text)));
  }

  void show_stage(const StageView& stage, TokenId chosen) {
    out_ += fmt::format("  {}: {} left\n", style_.cyan(stage.name), format_count(stage.n_left));
    for (const StageView::Candidate& c : stage.best) {
      const std::string piece = shown_piece(engine_, c.token);
      out_ += fmt::format("    {:>7} {:<16} {:>8.3f} {:>7.3f} {}\n", c.token,
                          c.token == chosen ? style_.green(piece) : piece, c.logit, c.probability, bar(c.probability));
    }
  }

  const Engine& engine_;
  uint64_t seed_;
  Style style_{STDOUT_FILENO};
  std::string out_;
};

Json to_json(const Engine& engine, const TokenEvent& event) {
  Json token = {{"token", event.token}, {"piece", engine.piece(event.token)}, {"text", event.text}};
  if (!event.explanation) return token;
  const TokenExplanation& explanation = *event.explanation;
  token["was_drawn"] = explanation.was_drawn;
  token["draw"] = explanation.draw;
  if (explanation.guess >= 0)
    token["guess"] = {{"token", explanation.guess}, {"accepted", explanation.guess == event.token}};
  for (const StageView& stage : explanation.stages) {
    Json best = Json::array();
    for (const StageView::Candidate& c : stage.best)
      best.push_back(
          {{"token", c.token}, {"piece", engine.piece(c.token)}, {"logit", c.logit}, {"probability", c.probability}});
    token["stages"].push_back({{"name", stage.name}, {"n_left", stage.n_left}, {"best", std::move(best)}});
  }
  return token;
}

std::string to_json(const Engine& engine, const Trace& trace) {
  const ModelInfo& info = engine.info();
  const RequestTimings& t = trace.summary.timings;
  Json prompt = Json::array();
  for (const TokenId token : trace.prompt) prompt.push_back({{"token", token}, {"piece", engine.piece(token)}});
  Json tokens = Json::array();
  for (const TokenEvent& event : trace.events) tokens.push_back(to_json(engine, event));
  const Json json = {
      {"prompt", std::move(prompt)},
      {"shapes", {{"embedding", {trace.prompt.size(), info.dim}}, {"layers", info.n_layers}, {"logits", info.n_vocab}}},
      {"weight_bytes", info.weight_bytes},
      {"kv_bytes", info.kv_bytes},
      {"timings", {{"prefill_ms", t.prefill_ms}, {"decode_ms", t.decode_ms}, {"itl_mean_ms", t.itl_mean_ms}}},
      {"seed", trace.summary.usage.seed},
      {"tokens", std::move(tokens)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int run(const ExplainOptions& options) {
  auto choice = choose_model(options.generation.model, options.source.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  PromptSource source = options.source;
  source.positionals = choice->texts;
  auto text = read_prompt(source);
  if (!text) return say_error(text.error().message), kUserInput;
  int code = kDone;
  const auto engine = open_engine(engine_options(options.generation, choice->model), code);
  if (!engine) return code;
  Request request;
  request.prompt = TextPrompt{std::move(*text)};
  request.sampling = sampling_params(options.generation);
  request.sampling.explain = true;
  if (!request.sampling.max_tokens) request.sampling.max_tokens = kTokensShown;
  auto constraint = read_constraint(options.constraint);
  if (!constraint) return say_error(constraint.error().message), kUserInput;
  request.constraint = std::move(*constraint);
  auto trace = run_traced(*engine, request);
  if (!trace) return say_error(trace.error().message), exit_code(trace.error());
  if (options.json) return write_out(to_json(*engine, *trace)), kDone;
  Page(*engine, trace->summary.usage.seed).show(*trace);
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
