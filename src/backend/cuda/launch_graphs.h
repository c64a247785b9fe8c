#pragma once
// Lists of launches that came before, as graphs of the driver: a step that is like an earlier one is one call, and a
// call for each launch whose blocks or arguments differ from those of the last time. A graph is known by the part of
// the step and by the kernels in their order. One thread. The device's context is current at every call.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/cuda/driver.h"
#include "backend/cuda/launch_list.h"
#include "backend/cuda/loaded_kernels.h"

namespace candor::backend::cuda {

class LaunchGraphs {
 public:
  // Launches in all graphs that are kept, at most: some thirty steps of a dense model.
  static constexpr size_t kMostNodes = 16384;
  // Shorter lists are launched faster one by one.
  static constexpr size_t kLeastNodes = 4;

  // Both outlive it.
  LaunchGraphs(const DriverFunctions& driver, LoadedKernels& kernels, size_t most_nodes = kMostNodes)
      : driver_(&driver), kernels_(&kernels), most_nodes_(most_nodes) {}

  struct Outcome {
    bool is_launched = false;
    DriverStatus status = 0;
    const LaunchList::Entry* entry = nullptr;  // that failed; nullptr: the whole
  };
  // Not launched and status 0: the caller launches one by one, since the list is new, short, or too long to be kept, or
  // the card has no memory for its graph.
  Outcome run(const LaunchList& launches, DriverHandle stream);
  // REQUIRES: the stream is idle, or work of the graphs does no harm.
  void clear();

  size_t n_graphs() const { return graphs_.size(); }

 private:
  struct Graph {
    uint64_t hash = 0;
    LaunchList launches{};  // as the driver has them
    DriverHandle graph = nullptr;
    DriverHandle exec = nullptr;
    std::vector<DriverHandle> nodes{};
    uint64_t last_use = 0;
  };

  Graph* find(const LaunchList& launches, uint64_t hash);
  // Whether a list of this hash was asked about before; it is from now on.
  bool was_seen(uint64_t hash);
  Outcome add(const LaunchList& launches, uint64_t hash);
  Outcome build(Graph& graph);
  Outcome update(Graph& graph, const LaunchList& launches);
  DriverStatus node_of(const LaunchList& launches, const LaunchList::Entry& entry, const void** args,
                       DriverNodeParams& params);
  void make_place(size_t n_nodes);
  void destroy(Graph& graph);

  const DriverFunctions* driver_;
  LoadedKernels* kernels_;
  size_t most_nodes_;
  std::vector<std::unique_ptr<Graph>> graphs_{};
  size_t n_nodes_ = 0;
  uint64_t n_uses_ = 0;
  bool has_memory_ = true;
  std::array<uint64_t, 1024> seen_{};  // hashes, the oldest is replaced
  size_t n_seen_ = 0;
};

}  // namespace candor::backend::cuda
