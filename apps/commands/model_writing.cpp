#include "apps/commands/model_writing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <ratio>
#include <system_error>
#include <utility>

#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "model/hub/hub_writer.h"
#include "platform/topology.h"
#include "quantize/quantizer.h"
#include "quantize/size_plan.h"

namespace candor::apps {
namespace {

Result<void> check_target_of(const FileOptions& options) {
  std::vector<std::string> sources = {options.source};
  if (options.imatrix) sources.push_back(*options.imatrix);
  return check_target(options.target, sources, options.force);
}

Result<quantize::QuantizeOptions> read_options(const FileOptions& options) {
  quantize::QuantizeOptions result;
  result.naive_int8 = options.naive_int8;
  result.n_threads = write_threads(options);
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

// By the size that is asked for; types that the command names stay.
Result<void> choose_types(const FileOptions& options, const formats::ModelFile& file,
                          quantize::QuantizeOptions& quantize_options) {
  quantize::SizeTarget target{.bits = options.target_bits};
  if (options.target_size) {
    CANDOR_ASSIGN(target.bytes, quantize::parse_size(*options.target_size));
  }
  ProgressBar bar("measuring errors");
  quantize_options.progress = [&bar](uint64_t done, uint64_t total) { return go_on(bar, done, total); };
  CANDOR_ASSIGN(quantize::SizePlan plan, quantize::plan_size(file, quantize_options, target));
  bar.finish();
  std::string types;
  for (const auto& [type, n] : plan.n_tensors) {
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", n, type);
  }
  write_err(fmt::format("{:.2f} bits a weight: {}\n", plan.bits, types));
  quantize_options.recipe = plan.recipe;
  std::vector<quantize::Override> named = std::move(quantize_options.overrides);
  quantize_options.overrides = std::move(plan.overrides);
  std::ranges::move(named, std::back_inserter(quantize_options.overrides));
  return {};
}

Result<void> write_gguf(const FileOptions& options, const OpenModel& open, const char* label) {
  CANDOR_TRY(check_target_of(options));
  CANDOR_ASSIGN(quantize::QuantizeOptions quantize_options, read_options(options));
  CANDOR_ASSIGN(const auto file, open());
  CANDOR_TRY(quantize::check_overrides(quantize_options.overrides, file->tensors()));
  if (options.imatrix) {
    CANDOR_ASSIGN(const auto imatrix, formats::open_model_file(*options.imatrix));
    CANDOR_ASSIGN(quantize::Importance importance, quantize::Importance::read(*imatrix, *file));
    quantize_options.importance = std::make_shared<const quantize::Importance>(std::move(importance));
  }
  if (options.target_bits || options.target_size) CANDOR_TRY(choose_types(options, *file, quantize_options));
  ProgressBar bar(label);
  quantize_options.progress = [&bar](uint64_t done, uint64_t total) { return go_on(bar, done, total); };
  const auto began = Clock::now();
  CANDOR_ASSIGN(const formats::WriteReport report, quantize::write_gguf(*file, options.target, quantize_options));
  bar.finish();
  say_sizes(options, report, began);
  return {};
}

Result<void> write_folder(const FileOptions& options, const OpenModel& open, const char* label) {
  CANDOR_TRY(check_target_of(options));
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
  CANDOR_ASSIGN(const auto file, open());
  ProgressBar bar(label);
  write_options.progress = [&bar](uint64_t done, uint64_t total) { return go_on(bar, done, total); };
  const auto began = Clock::now();
  CANDOR_ASSIGN(const formats::WriteReport report, model::write_hub_folder(*file, options.target, write_options));
  bar.finish();
  say_sizes(options, report, began);
  return {};
}

}  // namespace

Result<void> check_target(const std::string& target, std::span<const std::string> sources, bool force) {
  std::error_code ignored;
  if (std::ranges::any_of(sources,
                          [&](const auto& one) { return std::filesystem::equivalent(one, target, ignored); })) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} is both the source and the result; name another file", printable(target)));
  }
  if (force || !std::filesystem::exists(target, ignored)) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{} exists; name another file, or give --force", printable(target)));
}

bool is_gguf_name(const std::string& path) {
  return path.ends_with(".gguf");
}

int32_t write_threads(const FileOptions& options) {
  return options.n_threads > 0 ? options.n_threads : platform::advise_threads(platform::read_topology()).n_threads;
}

int write_model(const FileOptions& options, const OpenModel& open, const char* label) {
  const Result<void> done =
      is_gguf_name(options.target) ? write_gguf(options, open, label) : write_folder(options, open, label);
  if (done) return kDone;
  say_error(done.error().message);
  return done.error().kind == ErrorKind::kCancelled ? kInterrupted : kUserInput;
}

}  // namespace candor::apps
