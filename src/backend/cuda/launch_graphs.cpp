#include "backend/cuda/launch_graphs.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace candor::backend::cuda {
namespace {

using Entry = LaunchList::Entry;

bool has_kernels_of(const LaunchList& a, const LaunchList& b) {
  return a.part() == b.part() && std::ranges::equal(a.entries(), b.entries(), {}, &Entry::kernel, &Entry::kernel);
}

// Of the part and the kernels. Names are constants, so that their places tell them apart.
uint64_t hash_of(const LaunchList& launches) {
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t hash = 0xcbf29ce484222325 ^ static_cast<uint64_t>(launches.part());
  for (const Entry& entry : launches.entries()) {
    hash = (hash ^ reinterpret_cast<uintptr_t>(entry.kernel)) * kPrime;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

LaunchGraphs::Outcome LaunchGraphs::run(const LaunchList& launches, DriverHandle stream) {
  const size_t n = launches.entries().size();
  if (n < kLeastNodes || n > most_nodes_) return {};
  const uint64_t hash = hash_of(launches);
  Graph* graph = find(launches, hash);
  Outcome outcome;
  if (graph != nullptr) {
    outcome = update(*graph, launches);
  } else {
    if (!was_seen(hash) || !has_memory_) return {};
    outcome = add(launches, hash);
    if (outcome.status == driver::kOutOfMemory) {
      has_memory_ = false;
      return {};
    }
    graph = graphs_.empty() ? nullptr : graphs_.back().get();
  }
  if (outcome.status != 0) return outcome;
  graph->last_use = ++n_uses_;
  const DriverStatus status = driver_->launch_graph(graph->exec, stream);
  return {.is_launched = status == 0, .status = status};
}

LaunchGraphs::Graph* LaunchGraphs::find(const LaunchList& launches, uint64_t hash) {
  for (const std::unique_ptr<Graph>& graph : graphs_) {
    if (graph->hash == hash && has_kernels_of(graph->launches, launches)) return graph.get();
  }
  return nullptr;
}

bool LaunchGraphs::was_seen(uint64_t hash) {
  const auto end = seen_.begin() + static_cast<std::ptrdiff_t>(std::min(n_seen_, seen_.size()));
  if (std::find(seen_.begin(), end, hash) != end) return true;
  seen_[n_seen_++ % seen_.size()] = hash;
  return false;
}

LaunchGraphs::Outcome LaunchGraphs::add(const LaunchList& launches, uint64_t hash) {
  make_place(launches.entries().size());
  auto graph = std::make_unique<Graph>();
  graph->hash = hash;
  graph->launches = launches;
  Outcome outcome = build(*graph);
  if (outcome.status == 0) {
    n_nodes_ += graph->nodes.size();
    graphs_.push_back(std::move(graph));
    return outcome;
  }
  // The entry is the graph's own, and goes with it.
  if (outcome.entry != nullptr) outcome.entry = &launches.entries()[static_cast<size_t>(graph->nodes.size())];
  destroy(*graph);
  return outcome;
}

// Each launch waits for the one before it.
LaunchGraphs::Outcome LaunchGraphs::build(Graph& graph) {
  if (const DriverStatus status = driver_->create_graph(&graph.graph, 0); status != 0) return {.status = status};
  graph.nodes.reserve(graph.launches.entries().size());
  for (const Entry& entry : graph.launches.entries()) {
    const void* args = nullptr;
    DriverNodeParams params;
    DriverStatus status = node_of(graph.launches, entry, &args, params);
    DriverHandle node = nullptr;
    const DriverHandle before = graph.nodes.empty() ? nullptr : graph.nodes.back();
    if (status == 0) {
      status = driver_->add_kernel_node(&node, graph.graph, before == nullptr ? nullptr : &before,
                                        before == nullptr ? 0 : 1, &params);
    }
    if (status != 0) return {.status = status, .entry = &entry};
    graph.nodes.push_back(node);
  }
  return {.status = driver_->instantiate_graph(&graph.exec, graph.graph, 0)};
}

// Launches that run now keep what they have.
LaunchGraphs::Outcome LaunchGraphs::update(Graph& graph, const LaunchList& launches) {
  bool is_changed = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Entry& entry = launches.entries()[i];
    const Entry& last = graph.launches.entries()[i];
    if (entry.launch == last.launch &&
        std::memcmp(launches.args(entry), graph.launches.args(last), entry.args_bytes) == 0) {
      continue;
    }
    is_changed = true;
    const void* args = nullptr;
    DriverNodeParams params;
    DriverStatus status = node_of(launches, entry, &args, params);
    if (status == 0) status = driver_->set_kernel_node(graph.exec, graph.nodes[i], &params);
    if (status != 0) return {.status = status, .entry = &entry};
  }
  if (is_changed) graph.launches = launches;
  return {};
}

// args: what params point to.
DriverStatus LaunchGraphs::node_of(const LaunchList& launches, const Entry& entry, const void** args,
                                   DriverNodeParams& params) {
  const Launch& launch = entry.launch;
  *args = launches.args(entry);
  params = {.grid_x = launch.x,
            .grid_y = launch.y,
            .grid_z = launch.z,
            .block_x = launch.n_threads,
            .shared_bytes = launch.shared_bytes,
            .values = const_cast<void**>(args)};
  return kernels_->prepare(entry.kernel, launch, &params.function);
}

// Those that were not used for the longest time go.
void LaunchGraphs::make_place(size_t n_nodes) {
  while (n_nodes_ + n_nodes > most_nodes_) {
    const auto oldest = std::ranges::min_element(graphs_, {}, [](const auto& graph) { return graph->last_use; });
    n_nodes_ -= (*oldest)->nodes.size();
    destroy(**oldest);
    graphs_.erase(oldest);
  }
}

void LaunchGraphs::destroy(Graph& graph) {
  if (graph.exec != nullptr) driver_->destroy_graph_exec(graph.exec);
  if (graph.graph != nullptr) driver_->destroy_graph(graph.graph);
  graph.exec = graph.graph = nullptr;
}

void LaunchGraphs::clear() {
  for (const std::unique_ptr<Graph>& graph : graphs_) destroy(*graph);
  graphs_.clear();
  n_nodes_ = 0;
}

}  // namespace candor::backend::cuda
