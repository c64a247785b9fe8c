#include "apps/estimate/subject.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/options/model_choice.h"
#include "model/cost.h"
#include "model/hub/hub_folder.h"
#include "model/known_models.h"
#include "model/model.h"

namespace candor::apps {
namespace {

Result<Subject> subject_of_file(const EstimateOptions& options) {
  CANDOR_ASSIGN(const ModelAndTexts choice, choose_model(options.model, options.positionals));
  if (!choice.texts.empty())
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("estimate takes one model, a file or a folder; what is \"{}\"? A published one is --like NAME",
                    choice.texts[0]));
  CANDOR_ASSIGN(const auto file, model::open_model(choice.model));
  CANDOR_ASSIGN(model::ArchSpec spec, model::read_arch(*file));
  CANDOR_ASSIGN(model::ArchCost cost, model::cost_of(*file, spec));
  Subject subject{choice.model.filename().string(), std::move(spec), std::move(cost), choice.model};
  subject.bits_per_weight = 8 * subject.cost.bytes.total() / subject.cost.parameters.total();
  double in_file = 0;
  for (const TensorView& tensor : file->tensors()) in_file += static_cast<double>(tensor.shape.n_elements());
  subject.unused_parameters = std::max(0.0, in_file - subject.cost.parameters.total());
  return subject;
}

Result<Subject> subject_of_name(const EstimateOptions& options) {
  const model::KnownModel* known = model::find_known_model(*options.like);
  if (known == nullptr) {
    std::string names;
    for (const model::KnownModel& model : model::known_models())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
    return fail(ErrorKind::kInvalidInput, fmt::format("--like \"{}\" is not known; known are {}, or give --parameters",
                                                      *options.like, names));
  }
  const double bits = options.bits.value_or(16);
  model::ArchSpec spec = known->spec();
  model::ArchCost cost = model::cost_of(spec, bits);
  return Subject{.name = std::string(known->name), .spec = std::move(spec), .cost = std::move(cost),
                 .bits_per_weight = bits};
}

// What is not given is that of the published model whose size is nearest.
Result<Subject> subject_on_paper(const EstimateOptions& options) {
  const model::KnownModel& nearest = model::nearest_dense_model(*options.parameters);
  const model::ArchSpec like = nearest.spec();
  const backend::AttnSpec& attn = like.blocks.front().attn;
  std::string assumed;
  const auto shape = [&assumed](const std::optional<int64_t>& given, int64_t fallback, const char* name) {
    if (!given) assumed += fmt::format("{}{} {}", assumed.empty() ? "" : ", ", name, fallback);
    return static_cast<int32_t>(given.value_or(fallback));
  };
  model::BlockSpec block;
  const int32_t n_layers = shape(options.layers, static_cast<int64_t>(like.blocks.size()), "--layers");
  block.attn.n_heads = shape(options.heads, attn.n_heads, "--heads");
  const int32_t likely_kv = std::min(attn.n_kv_heads, block.attn.n_heads);
  block.attn.n_kv_heads = shape(options.kv_heads, likely_kv, "--kv-heads");
  block.attn.head_dim = shape(options.head_dim, attn.head_dim, "--head-dim");
  if (block.attn.n_kv_heads > block.attn.n_heads)
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--kv-heads {} are more than the heads that share them (--heads {})", block.attn.n_kv_heads,
                            block.attn.n_heads));
  const double bits = options.bits.value_or(16);
  Subject subject{.name = fmt::format("{:g} parameters of {:g} bits", *options.parameters, bits),
                  .bits_per_weight = bits,
                  .is_paper = true};
  subject.spec.blocks.assign(static_cast<size_t>(n_layers), block);
  subject.cost = model::cost_of(subject.spec, bits);
  subject.cost.parameters = {.dense = *options.parameters};
  subject.cost.bytes = {.dense = model::weight_bytes_at(*options.parameters, bits)};
  if (!assumed.empty()) subject.assumed_from = nearest.name;
  subject.assumed = std::move(assumed);
  return subject;
}

}  // namespace

Result<Subject> choose_subject(const EstimateOptions& options) {
  const bool has_file = options.model || !options.positionals.empty();
  if (has_file + options.like.has_value() + options.parameters.has_value() > 1)
    return fail(ErrorKind::kInvalidInput, "a model file, --like and --parameters each name a model: give one");
  const bool has_shape = options.layers || options.heads || options.kv_heads || options.head_dim;
  if (has_shape && !options.parameters)
    return fail(ErrorKind::kInvalidInput,
                "--layers, --heads, --kv-heads and --head-dim describe a model on paper: give --parameters too");
  if (options.bits && !options.parameters && !options.like)
    return fail(ErrorKind::kInvalidInput,
                "--bits is of a model on paper, a file has its own: give --parameters or --like too");
  if (options.like) return subject_of_name(options);
  return options.parameters ? subject_on_paper(options) : subject_of_file(options);
}

}  // namespace candor::apps
