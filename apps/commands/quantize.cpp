// candor quantize and candor convert: a model in other types, or in the other format.

#include "quantize/quantizer.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <ratio>
#include <string>
#include <system_error>
#include <utility>

#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_writer.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

struct FileOptions {
  std::string source;
  std::string target;
  std::string type;
  std::vector<std::string> tensor_types;
  int32_t n_threads = 0;
  bool naive_int8 = false;
  bool force = false;
};

bool is_gguf_name(const std::string& path) {
  return path.ends_with(".gguf");
}

Result<void> check_target(const FileOptions& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.source, options.target, ignored)) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} is both the source and the result; name another file", printable(options.target)));
  }
  if (!options.force && std::filesystem::exists(options.target, ignored)) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} exists; name another file, or give --force", printable(options.target)));
  }
  return {};
}

Result<quantize::QuantizeOptions> read_options(const FileOptions& options) {
  quantize::QuantizeOptions result;
  result.naive_int8 = options.naive_int8;
  result.n_threads =
      options.n_threads > 0 ? options.n_threads : platform::advise_threads(platform::read_topology()).n_threads;
  if (!options.type.empty()) {
    CANDOR_ASSIGN(result.recipe, quantize::find_recipe(options.type));
  }
  for (const std::string& text : options.tensor_types) {
    CANDOR_ASSIGN(quantize::Override override, quantize::parse_override(text));
    result.overrides.push_back(std::move(override));
  }
  return result;
}

using Clock = std::chrono::steady_clock;

bool go_on(ProgressBar& bar, uint64_t done, uint64_t total) {
  bar.update(done, total);
  return !interrupted();
}

void say_sizes(const FileOptions& options, const formats::WriteReport& report, Clock::time_point began) {
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  const double bits = 8.0 * static_cast<double>(report.written_bytes) / static_cast<double>(report.n_weights);
  write_err(fmt::format("{}: {} to {}, {:.2f} bits a weight, in {}\n", printable(options.target),
                        format_bytes(report.source_bytes), format_bytes(report.written_bytes), bits, format_ms(ms)));
}

Result<void> write_gguf(const FileOptions& options, const char* label) {
  CANDOR_TRY(check_target(options));
  CANDOR_ASSIGN(quantize::QuantizeOptions quantize_options, read_options(options));
  CANDOR_ASSIGN(const auto file, model::open_model(options.source));
  ProgressBar bar(label);
  quantize_options.progress = [&bar](uint64_t done, uint64_t total) { return go_on(bar, done, total); };
  const auto began = Clock::now();
  CANDOR_ASSIGN(const formats::WriteReport report, quantize::write_gguf(*file, options.target, quantize_options));
  bar.finish();
  say_sizes(options, report, began);
  return {};
}

Result<void> write_folder(const FileOptions& options, const char* label) {
  CANDOR_TRY(check_target(options));
  model::HubWriteOptions write_options;
  if (!options.type.empty()) {
    CANDOR_ASSIGN(const quantize::Recipe recipe, quantize::find_recipe(options.type));
    const bool is_float = recipe.dtype == DType::kF32 || recipe.dtype == DType::kF16 || recipe.dtype == DType::kBF16;
    if (!is_float) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("--type {}: safetensors hold f32, f16 or bf16; name a .gguf file for other types",
                              printable(options.type)));
    }
    write_options.dtype = recipe.dtype;
  }
  CANDOR_ASSIGN(const auto file, model::open_model(options.source));
  ProgressBar bar(label);
  write_options.progress = [&bar](uint64_t done, uint64_t total) { return go_on(bar, done, total); };
  const auto began = Clock::now();
  CANDOR_ASSIGN(const formats::WriteReport report, model::write_hub_folder(*file, options.target, write_options));
  bar.finish();
  say_sizes(options, report, began);
  return {};
}

int finish(const Result<void>& done) {
  if (done) return kDone;
  say_error(done.error().message);
  return done.error().kind == ErrorKind::kCancelled ? kInterrupted : kUserInput;
}

int run_quantize(const FileOptions& options) {
  if (options.type.empty() && !options.naive_int8) {
    return say_error("no type given: candor quantize SOURCE RESULT q4_k_m"), kUserInput;
  }
  if (!is_gguf_name(options.target)) {
    return say_error(
               fmt::format("{}: the result is a GGUF file; its name must end in .gguf", printable(options.target))),
           kUserInput;
  }
  return finish(write_gguf(options, "quantizing"));
}

int run_convert(const FileOptions& options) {
  return finish(is_gguf_name(options.target) ? write_gguf(options, "converting") : write_folder(options, "converting"));
}

CLI::App* add_command(CLI::App& app, const char* name, const char* help, const std::shared_ptr<FileOptions>& options) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("source", options->source, "MODEL")->required();
  command->add_option("result", options->target, "RESULT")->required();
  command->add_flag("--force", options->force, "replace the result if it exists");
  return command;
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  const auto options = std::make_shared<FileOptions>();
  CLI::App* command = add_command(
      app, "quantize",
      "write a model in fewer bits; TYPE: f16, bf16, q8_0, w8a8, q6_k, q5_k_m, q5_0, q4_k_m, q4_0, q3_k_m, q2_k",
      options);
  CLI::Option* type = command->add_option("type", options->type, "TYPE");
  command->add_option("--tensor-type", options->tensor_types, "NAME=TYPE for tensors of that name (* is any text)")
      ->type_name("NAME=TYPE");
  command->add_option("-t,--threads", options->n_threads, "compute threads")->check(CLI::Range(1, 1024));
  CLI::Option* naive =
      command->add_flag("--naive-int8", options->naive_int8, "int8 with one scale a tensor, for comparison");
  type->excludes(naive);
  command->callback([options, &action] { action = [options] { return run_quantize(*options); }; });
}

void add_convert(CLI::App& app, Action& action) {
  const auto options = std::make_shared<FileOptions>();
  CLI::App* command = add_command(
      app, "convert", "to a GGUF file (RESULT.gguf), or to a folder of safetensors (any other RESULT)", options);
  command->add_option("--type", options->type, "store weights as f32, f16 or bf16; left out, as they are");
  command->callback([options, &action] { action = [options] { return run_convert(*options); }; });
}

}  // namespace candor::apps
