#include "apps/estimate/figures.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/arch_cost.h"
#include "model/cost.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;
using model::ArchCost;
using model::Hardware;
using model::Work;

// So many devices share the work evenly, and exchange between them costs nothing.
Hardware together(const Hardware& one, double n_devices) {
  Hardware all = one;
  all.flops *= n_devices;
  all.attention_flops *= n_devices;
  all.bytes_per_s *= n_devices;
  return all;
}

// nullopt where a device's memory is not known.
std::optional<double> devices_for(double n_bytes, const Hardware& hardware) {
  if (hardware.memory_bytes <= 0) return std::nullopt;
  return std::max(1.0, std::ceil(n_bytes / hardware.memory_bytes));
}

// Rows of all n_new steps, one after another.
Work decode_all(const ArchCost& cost, const EstimateOptions& options) {
  const double n_new = options.new_tokens(), n_prompt = options.prompt_tokens();
  Work work = model::decode_work(cost, 0, options.sequences());
  work.matrix_flops *= n_new;
  work.state_flops *= n_new;
  work.attention_flops = 0;
  for (const model::AttentionShape& shape : cost.attention) {
    work.attention_flops +=
        shape.n_blocks * shape.pair_flops * options.sequences() * model::seen_positions(n_prompt, n_new, shape.window);
  }
  return work;
}

// An image in each sequence, encoded one after another before the prompt is read.
double encode_ms(const SubjectImage* image, const Hardware& hardware, const EstimateOptions& options) {
  if (image == nullptr) return 0;
  return 1e3 * options.sequences() * model::work_seconds(image->cost.work, hardware) +
         options.overhead_ms.value_or(0) * static_cast<double>(image->prepared.tiles.size()) * options.sequences();
}

void add_image(Json& json, const SubjectImage& image, double ms) {
  const image::Size size = image.prepared.original;
  json["image"] = {{"width", size.width},
                   {"height", size.height},
                   {"projector", image.vision->spec.family},
                   {"tiles", image.prepared.tiles.size()},
                   {"patches", image.cost.n_patches},
                   {"rows", image.cost.n_rows},
                   {"parameters", image.parameters},
                   {"weight_bytes", image.weight_bytes},
                   {"encode_flops", image.cost.work.flops()},
                   {"encode_matrix_flops", image.cost.work.matrix_flops},
                   {"encode_attention_flops", image.cost.work.attention_flops},
                   {"encode_read_bytes", image.cost.work.read_bytes}};
  json["encode_ms"] = ms;
}

void add_memory(Json& json, const Subject& subject, const SubjectImage* image, const Machine& machine,
                const EstimateOptions& options) {
  const double kv_token = subject.cost.kv_bytes_per_token();
  const double kv = kv_token * (options.prompt_tokens() + options.new_tokens()) * options.sequences();
  const double states = subject.cost.state_bytes * options.sequences();
  const double tower = image == nullptr ? 0 : image->weight_bytes;
  const double needed = subject.cost.bytes.total() + tower + kv + states;
  json["weight_bytes"] = subject.cost.bytes.total();
  json["kv_bytes_per_token"] = kv_token;
  json["kv_bytes"] = kv;
  json["kv_bytes_128k"] = kv_token * 131072;
  json["kv_bytes_1m"] = kv_token * 1048576;
  json["state_bytes"] = states;
  json["memory_bytes"] = needed;
  json["device_memory_bytes"] = machine.rates.memory_bytes > 0 ? Json(machine.rates.memory_bytes) : Json(nullptr);
  const auto n_devices = devices_for(needed, machine.rates);
  json["devices"] = n_devices ? Json(*n_devices) : Json(nullptr);
}

// images_ms: before a prompt is read.
void add_times(Json& json, const Subject& subject, const Hardware& hardware, const EstimateOptions& options,
               double images_ms) {
  const ArchCost& cost = subject.cost;
  const double n_prompt = options.prompt_tokens(), n_new = options.new_tokens(), n_batch = options.sequences();
  const double overhead_ms = options.overhead_ms.value_or(0);
  const Work prefill = model::prefill_work(cost, n_prompt, n_batch), decode = decode_all(cost, options),
             naive = model::naive_work(cost, n_prompt, n_new + 1, n_batch);
  const double ttft_ms = images_ms + 1e3 * model::work_seconds(prefill, hardware) + overhead_ms;
  const Work middle = model::decode_work(cost, n_prompt + n_new / 2, n_batch);
  const double itl_ms = 1e3 * model::work_seconds(middle, hardware) + overhead_ms;
  const double answer_ms = model::answer_ms(ttft_ms, itl_ms, n_new);
  const double naive_ms = images_ms + 1e3 * model::work_seconds(naive, hardware) + (n_new + 1) * overhead_ms;
  json["prefill_flops"] = prefill.flops();
  json["prefill_matrix_flops"] = prefill.matrix_flops;
  json["prefill_attention_flops"] = prefill.attention_flops;
  json["prefill_state_flops"] = prefill.state_flops;
  json["decode_flops"] = decode.flops();
  json["decode_matrix_flops"] = decode.matrix_flops;
  json["decode_attention_flops"] = decode.attention_flops;
  json["decode_read_bytes"] = middle.read_bytes;
  json["ttft_ms"] = ttft_ms;
  json["itl_weights_only_ms"] = 1e3 * model::memory_seconds(model::weights_read(cost, n_batch), hardware);
  json["itl_ms"] = itl_ms;
  json["answer_ms"] = answer_ms;
  json["decode_tokens_per_second"] = 1e3 * n_batch / itl_ms;
  json["answers_per_second"] = 1e3 * n_batch / answer_ms;
  json["naive_flops"] = naive.flops();
  json["naive_ms"] = naive_ms;
  json["naive_times"] = naive_ms / answer_ms;
  json["kv_cache_saves"] = model::projection_savings(n_prompt, n_new);
  json["attended_from"] = n_prompt;
  json["attended_to"] = n_prompt + n_new - 1;
}

}  // namespace

Json estimate_figures(const Subject& subject, const SubjectImage* image, const Machine& machine,
                      const EstimateOptions& options) {
  Json json = {{"model", subject.name},
               {"hardware", machine.name},
               {"hardware_description", machine.description},
               {"hardware_rates", machine.rates_text},
               {"parameters", subject.cost.parameters.total()},
               {"used_parameters", subject.cost.used_parameters()},
               {"unused_parameters", subject.unused_parameters},
               {"prompt", options.prompt_tokens()},
               {"new", options.new_tokens()},
               {"batch", options.sequences()},
               {"efficiency", options.efficiency.value_or(1)},
               {"overhead_ms", options.overhead_ms.value_or(0)}};
  add_memory(json, subject, image, machine, options);
  const double n_devices = json["devices"].is_null() ? 1 : json["devices"].get<double>();
  const double images_ms =
      image == nullptr ? 0 : encode_ms(image, together(machine.rates_of(image->arithmetic), n_devices), options);
  if (image != nullptr) add_image(json, *image, images_ms);
  add_times(json, subject, together(machine.rates, n_devices), options, images_ms);
  if (!subject.assumed.empty()) {
    json["assumed"] = subject.assumed;
    json["assumed_from"] = subject.assumed_from;
  }
  if (options.price) {
    const double rate = json["decode_tokens_per_second"].get<double>();
    json["price_per_million_tokens"] = 1e6 * model::price_per_token(*options.price * n_devices, rate);
  }
  return json;
}

}  // namespace candor::apps
