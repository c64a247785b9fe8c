#pragma once
// Decides where the ranks of one host run, and with how many threads: each in a NUMA domain of its own where there are
// several.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "candor/options.h"
#include "comm/communicator.h"
#include "platform/numa.h"

namespace candor::engine {

struct HostPlaces {
  std::vector<platform::ProcessPlace> places{};  // of this host's ranks, in order
  bool can_spin = false;                         // each of their threads has a processor
};

// Opening an engine of several ranks binds the calling thread: afterwards it is where it was before.
using HeldPlace = platform::ScopedPlace;

// One for each NUMA domain, where this machine has several that are worth a rank.
int32_t advised_ranks();

// As many as are asked for, or advised here.
int32_t all_threads(const EngineOptions& options);

// Of n ranks. n_carriers: threads beside those that compute, which run all the time. REQUIRES: the calling thread is
// not bound to one of the places.
HostPlaces place_ranks(const EngineOptions& options, int32_t n, int32_t n_carriers);

// Rank 0's become everybody's.
Result<void> share_places(HostPlaces& places, comm::Communicator& comm);

}  // namespace candor::engine
