// candor estimate: the paper arithmetic of a model on a machine.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/idle_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "formats/model_file.h"
#include "model/cost.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"

namespace candor::apps {
namespace {

struct EstimateOptions {
  std::optional<std::string> model;
  std::vector<std::string> positionals;
  std::optional<double> parameters, bits, flops, bandwidth, price;
  std::optional<int64_t> layers, kv_heads, head_dim, n_prompt, n_new;
  std::string hardware = "h100";
  bool json = false;
};

// What the arithmetic needs to know of a model.
struct Subject {
  std::string name;
  double n_parameters = 0;
  double weight_bytes = 0;
  model::KvShape kv = {};
  std::string assumed = {};  // what of it nobody said, with the options that say it
};

Result<Subject> subject_of_file(const EstimateOptions& options) {
  CANDOR_ASSIGN(const ModelAndTexts choice, choose_model(options.model, options.positionals));
  if (!choice.texts.empty())
    return fail(ErrorKind::kInvalidInput, fmt::format("estimate takes one model; what is \"{}\"?", choice.texts[0]));
  CANDOR_ASSIGN(const auto file, model::open_model(choice.model));
  CANDOR_ASSIGN(const model::ArchSpec spec, model::read_arch(*file));
  Subject subject{.name = choice.model.filename().string()};
  for (const TensorView& tensor : file->tensors()) {
    subject.n_parameters += static_cast<double>(tensor.shape.n_elements());
    subject.weight_bytes += static_cast<double>(tensor.n_bytes);
  }
  const backend::AttnSpec& attn = spec.blocks.front().attn;
  subject.kv = {static_cast<double>(spec.blocks.size()), static_cast<double>(attn.n_kv_heads),
                static_cast<double>(attn.head_dim), 2, attn.latent_dim > 0 ? 1.0 : 2.0};
  return subject;
}

Result<Subject> subject_of(const EstimateOptions& options) {
  if (!options.parameters) {
    if (options.bits || options.layers || options.kv_heads || options.head_dim)
      return fail(ErrorKind::kInvalidInput,
                  "--bits, --layers, --kv-heads and --head-dim describe a model on paper: give --parameters too");
    return subject_of_file(options);
  }
  if (options.model || !options.positionals.empty())
    return fail(ErrorKind::kInvalidInput, "a model file and --parameters given: give one");
  const double bits = options.bits.value_or(16);
  std::string assumed;
  const auto shape = [&assumed](const std::optional<int64_t>& given, int64_t fallback, const char* name) {
    if (!given) assumed += fmt::format("{}{} {}", assumed.empty() ? "" : ", ", name, fallback);
    return static_cast<double>(given.value_or(fallback));
  };
  const model::KvShape kv = {shape(options.layers, 32, "--layers"), shape(options.kv_heads, 8, "--kv-heads"),
                             shape(options.head_dim, 128, "--head-dim"), 2};
  return Subject{fmt::format("{:g} parameters of {:g} bits", *options.parameters, bits), *options.parameters,
                 model::weight_bytes_at(*options.parameters, bits), kv, std::move(assumed)};
}

Result<model::Hardware> hardware_of(const EstimateOptions& options) {
  const model::Hardware* known = model::find_hardware(options.hardware);
  if (known == nullptr) {
    std::string names;
    for (const model::Hardware& hardware : model::known_hardware())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", hardware.name);
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--hardware \"{}\" is not known; known are {}, or give --flops and --bandwidth",
                            options.hardware, names));
  }
  model::Hardware hardware = *known;
  if (options.flops) hardware.flops = *options.flops;
  if (options.bandwidth) hardware.bytes_per_s = *options.bandwidth;
  if (options.flops || options.bandwidth) hardware.description = "as given";
  return hardware;
}

nlohmann::ordered_json estimate(const Subject& subject, const model::Hardware& hardware,
                                const EstimateOptions& options) {
  const double n_prompt = static_cast<double>(options.n_prompt.value_or(512)),
               n_new = static_cast<double>(options.n_new.value_or(128));
  const double prefill_flops = model::forward_flops(subject.n_parameters, n_prompt);
  const double ttft_ms = 1e3 * model::compute_seconds(prefill_flops, hardware);
  const double kv_token = model::kv_bytes_per_token(subject.kv);
  const double decode_ms =
      1e3 * model::memory_seconds(subject.weight_bytes + kv_token * (n_prompt + n_new / 2), hardware);
  nlohmann::ordered_json json = {{"model", subject.name},
                                 {"hardware", std::string(hardware.name)},
                                 {"hardware_description", std::string(hardware.description)},
                                 {"parameters", subject.n_parameters},
                                 {"weight_bytes", subject.weight_bytes},
                                 {"prompt", n_prompt},
                                 {"new", n_new},
                                 {"prefill_flops", prefill_flops},
                                 {"decode_flops", model::forward_flops(subject.n_parameters, n_new)},
                                 {"ttft_ms", ttft_ms},
                                 {"itl_ms", decode_ms},
                                 {"itl_weights_only_ms", 1e3 * model::memory_seconds(subject.weight_bytes, hardware)},
                                 {"answer_ms", model::answer_ms(ttft_ms, decode_ms, n_new)},
                                 {"decode_tokens_per_second", 1e3 / decode_ms},
                                 {"kv_bytes_per_token", kv_token},
                                 {"kv_bytes", kv_token * (n_prompt + n_new)},
                                 {"kv_bytes_128k", kv_token * 131072},
                                 {"kv_bytes_1m", kv_token * 1048576},
                                 {"attended_from", n_prompt},
                                 {"attended_to", n_prompt + n_new - 1},
                                 {"kv_cache_saves", model::projection_savings(n_prompt, n_new)}};
  if (!subject.assumed.empty()) json["assumed"] = subject.assumed;
  if (options.price) json["price_per_million_tokens"] = 1e6 * model::price_per_token(*options.price, 1e3 / decode_ms);
  return json;
}

std::string bytes_text(const nlohmann::ordered_json& value) {
  return format_bytes(static_cast<uint64_t>(value.get<double>()));
}

std::string to_text(const nlohmann::ordered_json& e) {
  const auto number = [&e](const char* key) { return e.at(key).get<double>(); };
  std::string out =
      fmt::format("{} on {}\n", e.at("model").get<std::string>(), e.at("hardware_description").get<std::string>());
  out += fmt::format("{:<22} {} of weights for {} parameters\n", "memory", bytes_text(e.at("weight_bytes")),
                     format_count(static_cast<int64_t>(number("parameters"))));
  out += fmt::format("{:<22} 2 x parameters x {:g} tokens = {:.4g} FLOP, TTFT at least {}\n", "prefill",
                     number("prompt"), number("prefill_flops"), format_ms(number("ttft_ms")));
  out += fmt::format("{:<22} 2 x parameters x {:g} tokens = {:.4g} FLOP\n", "decode", number("new"),
                     number("decode_flops"));
  out += fmt::format("{:<22} weights read once a token: at least {} ({} with K/V), at most {:.1f} tok/s\n", "",
                     format_ms(number("itl_weights_only_ms")), format_ms(number("itl_ms")),
                     number("decode_tokens_per_second"));
  out += fmt::format("{:<22} {} for {:g} tokens\n", "whole answer", format_ms(number("answer_ms")), number("new"));
  out += fmt::format("{:<22} {} a token, {} here, {} at 128 K, {} at 1 M tokens (16 bit)\n", "K/V memory",
                     bytes_text(e.at("kv_bytes_per_token")), bytes_text(e.at("kv_bytes")),
                     bytes_text(e.at("kv_bytes_128k")), bytes_text(e.at("kv_bytes_1m")));
  if (e.contains("assumed"))
    out += fmt::format("{:<22} assumed, as nobody said otherwise: {}\n", "", e.at("assumed").get<std::string>());
  out += fmt::format("{:<22} each new token attends over {:g}..{:g}; a K/V cache saves {:.1f} x the projections\n",
                     "attention", number("attended_from"), number("attended_to"), number("kv_cache_saves"));
  out += fmt::format("{:<22} attention O(T^2), feed-forward O(T d^2), once for each of L blocks\n", "growth");
  if (e.contains("price_per_million_tokens"))
    out += fmt::format("{:<22} {:.4g} for a million decoded tokens, one sequence at a time\n", "price",
                       number("price_per_million_tokens"));
  return out;
}

int run(const EstimateOptions& options, const CLI::App& command) {
  auto subject = subject_of(options);
  if (!subject) return say_error(subject.error().message), kUserInput;
  auto hardware = hardware_of(options);
  if (!hardware) return say_error(hardware.error().message), kUserInput;
  if (options.flops && options.bandwidth) {
    note_idle(command, {"--hardware"}, "--flops and --bandwidth say all that is computed with");
  }
  const nlohmann::ordered_json result = estimate(*subject, *hardware, options);
  write_out(options.json ? result.dump(2) + "\n" : to_text(result));
  return kDone;
}

}  // namespace

void add_estimate(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("estimate", "the paper arithmetic: FLOPs, bytes, TTFT, ITL, price");
  const auto options = std::make_shared<EstimateOptions>();
  command->add_option("model", options->positionals, "[MODEL]");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  command->add_option("--hardware", options->hardware, "a100, h100, rtx4090, m1-ultra, inferentia2, tpu-v5e (h100)")
      ->type_name("NAME");
  add_number(*command, "--flops", options->flops, 1, 1e21, "operations a second, instead");
  add_number(*command, "--bandwidth", options->bandwidth, 1, 1e18, "bytes a second, instead");
  add_number(*command, "--parameters", options->parameters, 1, 1e15, "a model on paper instead of a file");
  add_number(*command, "--bits", options->bits, 1, 64, "of each weight (16)");
  add_int(*command, "--layers", options->layers, 1, 100000, "for the K/V memory (32)");
  add_int(*command, "--kv-heads", options->kv_heads, 1, 100000, "for the K/V memory (8)");
  add_int(*command, "--head-dim", options->head_dim, 1, 100000, "for the K/V memory (128)");
  add_int(*command, "--prompt", options->n_prompt, 1, int64_t{1} << 32, "tokens of the prompt (512)");
  add_int(*command, "--new", options->n_new, 1, int64_t{1} << 32, "tokens decoded (128)");
  add_number(*command, "--price-per-hour", options->price, 0, 1e9, "of the machine");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, command, &action] { action = [options, command] { return run(*options, *command); }; });
}

}  // namespace candor::apps
