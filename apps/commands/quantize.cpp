// candor quantize and candor convert: a model in other types, or in the other format.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/commands/commands.h"
#include "apps/commands/model_writing.h"
#include "apps/options/arguments.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "formats/quote.h"
#include "model/hub/hub_folder.h"

namespace candor::apps {
namespace {

OpenModel opened(const FileOptions& options) {
  return [source = options.source] { return model::open_model(source); };
}

int run_quantize(const FileOptions& options) {
  const bool has_target = options.target_bits || options.target_size;
  if (options.type.empty() && !options.naive_int8 && !has_target) {
    return say_error("no type given: candor quantize SOURCE RESULT q4_k_m, or --target-bits 4.5"), kUserInput;
  }
  if (!is_gguf_name(options.target)) {
    return say_error(
               fmt::format("{}: the result is a GGUF file; its name must end in .gguf", printable(options.target))),
           kUserInput;
  }
  return write_model(options, opened(options), "quantizing");
}

int run_convert(const FileOptions& options) {
  return write_model(options, opened(options), "converting");
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
      "write a model in fewer bits; TYPE: q8_0, q6_k, q4_k_m, iq3_s, iq2_s, ... (a wrong one lists all)", options);
  CLI::Option* type = command->add_option("type", options->type, "TYPE");
  command->add_option("--tensor-type", options->tensor_types, "NAME=TYPE for tensors of that name (* is any text)")
      ->type_name("NAME=TYPE");
  command->add_option("-t,--threads", options->n_threads, "compute threads")->check(CLI::Range(1, 1024));
  command
      ->add_option("--imatrix", options->imatrix,
                   "an importance matrix of the model (GGUF, by candor imatrix): errors count by what comes in")
      ->type_name("FILE");
  CLI::Option* naive =
      command->add_flag("--naive-int8", options->naive_int8, "int8 with one scale a tensor, for comparison");
  type->excludes(naive);
  CLI::Option* bits = command->add_option("--target-bits", options->target_bits,
                                          "types by tensor, chosen by measured errors: so many bits a weight");
  bits->type_name("X")->check([](const std::string& text) {
    double value = 0.0;
    const bool is_good = CLI::detail::lexical_cast(text, value) && value >= 0.5 && value <= 16.0;
    return is_good ? std::string() : fmt::format("{}: expected 0.5 to 16", formats::in_quotes(text));
  });
  CLI::Option* size = command->add_option("--target-size", options->target_size,
                                          "the same for a file of at most so many bytes: 12GB, 700MB");
  size->type_name("SIZE");
  for (CLI::Option* target : {bits, size}) target->excludes(type)->excludes(naive);
  bits->excludes(size);
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
