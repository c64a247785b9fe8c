#include "apps/estimate/machine.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <utility>

#include "apps/bench/machine_limits.h"
#include "backend/all/gpus.h"
#include "kernels/kernels.h"
#include "kernels/limits.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

std::string limit_text(double per_s, const char* unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  for (; per_s >= 999.5 && i + 1 < kPrefixes.size(); ++i) per_s /= 1000;
  return fmt::format("{:.3g} {}{}", per_s, kPrefixes[i], unit);
}

Result<Machine> this_machine(const EstimateOptions& options, const Subject& subject) {
  const platform::Topology topology = platform::read_topology();
  const int32_t n_threads =
      static_cast<int32_t>(options.n_threads.value_or(platform::advise_threads(topology).n_threads));
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  auto limits = known_limits(n_threads);
  if (!limits) {
    CANDOR_ASSIGN(limits, measure_limits(n_threads));
  }
  Machine machine{.name = "this", .is_this = true};
  machine.rates.flops = limits->ops(subject.cost.arithmetic);
  for (const Arithmetic each : kArithmetics) machine.flops_by_arithmetic.push_back(limits->ops(each));
  machine.rates.attention_flops = limits->bf16_flops;
  machine.rates.bytes_per_s = limits->dram_read_bytes;
  machine.rates.memory_bytes = static_cast<double>(topology.memory_available_bytes);
  machine.description =
      fmt::format("this machine, measured: {}, {} thread{}", table->description, n_threads, n_threads == 1 ? "" : "s");
  return machine;
}

// By this program's kernels there: integers on tensor cores, all else by multiply-adds of floats.
void use_kernels(Machine& machine, double int8_ops, double f32_flops, Arithmetic arithmetic) {
  machine.flops_by_arithmetic = {int8_ops, f32_flops, f32_flops};
  machine.rates.flops = arithmetic == Arithmetic::kInt8 ? int8_ops : f32_flops;
  machine.rates.attention_flops = f32_flops;
}

Result<Machine> this_gpu(const Subject& subject) {
  const auto gpus = backend::measure_gpus();
  if (gpus.empty()) {
    return fail(ErrorKind::kUnsupported,
                "--device cuda: there is no GPU here that could be measured (candor doctor says why); --hardware h100 "
                "takes published figures");
  }
  const backend::GpuLimits& gpu = gpus.front();
  Machine machine{.name = "this", .description = "this GPU, measured: " + gpu.name, .is_this = true};
  machine.rates.bytes_per_s = gpu.read_bytes;
  machine.rates.memory_bytes = static_cast<double>(gpu.memory_bytes);
  use_kernels(machine, gpu.int8_ops, gpu.f32_flops, subject.cost.arithmetic);
  return machine;
}

Result<Machine> known_gpu(Machine machine, const Subject& subject) {
  const model::Hardware card = machine.rates;
  if (card.int8_ops <= 0) {
    std::string names;
    for (const model::Hardware& one : model::known_hardware()) {
      if (one.int8_ops > 0) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
    }
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--device cuda: there are no kernels for {}; there are for {}", card.name, names));
  }
  // "NVIDIA H100 SXM, bf16": what other programs compute in is not what this one does.
  machine.description = machine.description.substr(0, machine.description.find(", ")) + ", as published";
  use_kernels(machine, card.int8_ops, card.f32_flops, subject.cost.arithmetic);
  return machine;
}

Result<Machine> known_machine(const EstimateOptions& options) {
  const model::Hardware* known = model::find_hardware(options.hardware);
  if (known == nullptr) {
    std::string names = "this";
    for (const model::Hardware& hardware : model::known_hardware()) names += fmt::format(", {}", hardware.name);
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--hardware \"{}\" is not known; known are {}, or give --flops and --bandwidth",
                            options.hardware, names));
  }
  return Machine{.name = options.hardware, .description = std::string(known->description), .rates = *known};
}

void take_given(Machine& machine, const EstimateOptions& options) {
  if (options.flops) {
    machine.rates.flops = machine.rates.attention_flops = *options.flops;
    machine.flops_by_arithmetic.clear();
  }
  if (options.bandwidth) machine.rates.bytes_per_s = *options.bandwidth;
  if (options.memory_gb) machine.rates.memory_bytes = *options.memory_gb * 1e9;
  if (options.flops || options.bandwidth) {
    machine.description =
        options.flops && options.bandwidth ? "a machine as given" : machine.description + ", as given";
    machine.is_this = false;
  }
}

}  // namespace

model::Hardware Machine::rates_of(Arithmetic arithmetic) const {
  model::Hardware all = rates;
  for (size_t i = 0; i < flops_by_arithmetic.size(); ++i) {
    if (kArithmetics[i] == arithmetic) all.flops = flops_by_arithmetic[i];
  }
  return all;
}

Result<Machine> choose_machine(const EstimateOptions& options, const Subject& subject) {
  Machine machine{.name = "given"};
  if (!options.flops || !options.bandwidth) {
    const bool is_here = options.hardware == "this", is_gpu = options.device == "cuda";
    if (is_here) {
      CANDOR_ASSIGN(machine, is_gpu ? this_gpu(subject) : this_machine(options, subject));
    } else {
      CANDOR_ASSIGN(machine, known_machine(options));
      if (is_gpu) {
        CANDOR_ASSIGN(machine, known_gpu(std::move(machine), subject));
      }
    }
  }
  take_given(machine, options);
  const model::Hardware& rates = machine.rates;
  machine.rates_text = fmt::format("{} in matrices, ", limit_text(rates.flops, "OP/s"));
  if (rates.attention_flops > 0 && rates.attention_flops != rates.flops)
    machine.rates_text += fmt::format("{} in attention, ", limit_text(rates.attention_flops, "OP/s"));
  machine.rates_text += limit_text(rates.bytes_per_s, "B/s");
  const double reached = options.efficiency.value_or(1);
  machine.rates.flops *= reached;
  machine.rates.attention_flops *= reached;
  machine.rates.bytes_per_s *= reached;
  for (double& flops : machine.flops_by_arithmetic) flops *= reached;
  return machine;
}

}  // namespace candor::apps
