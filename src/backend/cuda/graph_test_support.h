#pragma once
// Graphs of the driver for tests (driver_test_support.h): lists of launches, which a graph's launch notes in their
// order.

#include <cstdint>
#include <vector>

#include "backend/cuda/driver_test_support.h"

namespace candor::backend::cuda {
namespace fake {

inline FakeDriver::Launched launch_of(const DriverNodeParams& params) {
  return launch_of(params.function, params.grid_x, params.block_x, params.shared_bytes, params.values);
}

// A node is the place in its list, counted from 1.
using Graph = std::vector<FakeDriver::Launched>;

inline DriverStatus make_graph(void** graph, const Graph& launches = {}) {
  *graph = new Graph(launches);
  ++FakeDriver::current().n_live;
  return 0;
}
inline DriverStatus drop_graph(void* graph) {
  delete static_cast<Graph*>(graph);
  --FakeDriver::current().n_live;
  return 0;
}

inline DriverStatus add_node(void** node, void* graph, void* const* before, size_t n_before,
                             const DriverNodeParams& params) {
  auto& launches = *static_cast<Graph*>(graph);
  const bool is_behind_last =
      launches.empty() ? n_before == 0 : n_before == 1 && reinterpret_cast<uintptr_t>(*before) == launches.size();
  if (!is_behind_last) return driver::kInvalidValue;
  launches.push_back(launch_of(params));
  *node = reinterpret_cast<void*>(launches.size());
  return 0;
}

inline DriverStatus set_node(void* graph, void* node, const DriverNodeParams& params) {
  static_cast<Graph*>(graph)->at(reinterpret_cast<uintptr_t>(node) - 1) = launch_of(params);
  return 0;
}

inline DriverStatus launch_graph(void* graph) {
  auto& launched = FakeDriver::current().launched;
  const auto& launches = *static_cast<const Graph*>(graph);
  launched.insert(launched.end(), launches.begin(), launches.end());
  return 0;
}

}  // namespace fake

inline DriverFunctions functions_with_graphs(const FakeDriver& fake) {
  using H = DriverHandle;
  DriverFunctions functions = fake.functions();
  CANDOR_FAKE_CALL(create_graph, cuGraphCreate, kContext, (H * g, uint32_t), return fake::make_graph(g))
  CANDOR_FAKE_CALL(add_kernel_node, cuGraphAddKernelNode_v2, kContext,
                   (H * n, H g, const H* b, size_t n_before, const DriverNodeParams* p),
                   return fake::add_node(n, g, b, n_before, *p))
  CANDOR_FAKE_CALL(set_kernel_node, cuGraphExecKernelNodeSetParams_v2, kContext, (H g, H n, const DriverNodeParams* p),
                   return fake::set_node(g, n, *p))
  CANDOR_FAKE_CALL(instantiate_graph, cuGraphInstantiateWithFlags, kContext, (H * e, H g, unsigned long long),
                   return fake::make_graph(e, *static_cast<fake::Graph*>(g)))
  CANDOR_FAKE_CALL(launch_graph, cuGraphLaunch, kContext, (H g, H), return fake::launch_graph(g))
  CANDOR_FAKE_CALL(destroy_graph_exec, cuGraphExecDestroy, kContextMaybeLost, (H g), return fake::drop_graph(g))
  CANDOR_FAKE_CALL(destroy_graph, cuGraphDestroy, kContextMaybeLost, (H g), return fake::drop_graph(g))
  return functions;
}

}  // namespace candor::backend::cuda
