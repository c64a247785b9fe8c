#include "engine/open/rank_places.h"

#include <cstddef>
#include <span>

#include "backend/ranks/orders.h"
#include "platform/topology.h"

namespace candor::engine {
namespace {

// Spinning pays only while every thread of every rank has a processor of its own.
bool has_processors(const HostPlaces& host, const platform::Topology& topology, int32_t n_carriers) {
  int32_t n_threads = n_carriers;
  for (const platform::ProcessPlace& place : host.places) n_threads += place.n_threads;
  const bool has_quota = topology.quota_cpus && n_threads > *topology.quota_cpus;
  return n_threads <= topology.n_allowed() && !has_quota;
}

int32_t threads_here(const EngineOptions& options, const platform::Topology& topology) {
  return options.n_threads > 0 ? options.n_threads : platform::advise_threads(topology).n_threads;
}

}  // namespace

int32_t advised_ranks() {
  return platform::advise_processes(platform::read_topology());
}

int32_t all_threads(const EngineOptions& options) {
  return threads_here(options, platform::read_topology());
}

HostPlaces place_ranks(const EngineOptions& options, int32_t n, int32_t n_carriers) {
  const platform::Topology topology = platform::read_topology();
  HostPlaces host{.places = platform::place_processes(topology, n, threads_here(options, topology))};
  host.can_spin = has_processors(host, topology, n_carriers);
  return host;
}

Result<void> share_places(HostPlaces& places, comm::Communicator& comm) {
  backend::Bytes bytes;
  if (comm.rank() == 0) {
    backend::OrderWriter writer(bytes, backend::Order::kStep);
    writer.put(places.can_spin);
    writer.put(static_cast<int32_t>(places.places.size()));
    for (const platform::ProcessPlace& place : places.places) {
      writer.put_list(std::span<const int32_t>(place.cpus));
      writer.put_list(std::span<const int32_t>(place.nodes));
      writer.put(place.n_threads);
    }
  }
  CANDOR_TRY(comm.broadcast(bytes));
  if (comm.rank() == 0) return {};
  backend::OrderReader reader(bytes);
  static_cast<void>(reader.take<backend::Order>());
  places.can_spin = reader.take<bool>();
  places.places.resize(static_cast<size_t>(reader.take<int32_t>()));
  for (platform::ProcessPlace& place : places.places) {
    reader.take_list(place.cpus);
    reader.take_list(place.nodes);
    place.n_threads = reader.take<int32_t>();
  }
  return {};
}

}  // namespace candor::engine
