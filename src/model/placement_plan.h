#pragma once
// Which parts of a model a device has whose memory does not hold them all: those with which a step that decodes takes
// the least time, by what each side was measured to read in a second. Pure functions; any thread.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/placement.h"
#include "model/arch_spec.h"
#include "model/placement.h"

namespace candor::model {

// How fast a side is.
struct SideSpeed {
  double bytes_per_s = 0;  // of weights and K/V that are read
  double part_s = 0;       // that each part takes besides: begins of operations
};
struct PlacementCosts {
  SideSpeed device{};
  SideSpeed host{};
  double crossing_s = 0;  // of a row, from one side to the other
};

// A part of a step, in the order of the step.
struct PlacedPart {
  uint64_t device_bytes = 0;  // memory that it takes there
  double read_bytes = 0;      // of a step
};
struct PartChoice {
  std::vector<backend::Side> sides{};  // [parts]
  uint64_t device_bytes = 0;
  double step_s = 0;
};
// The quickest step of those whose parts on the device take at most free_bytes. Rows begin and end on the host. Exact
// while there are few thousand different sums of bytes; else close to it.
PartChoice choose_sides(std::span<const PlacedPart> parts, const PlacementCosts& costs, uint64_t free_bytes);

struct PlacementNeeds {
  PartBytes bytes{};  // as the device has them
  PartMemory memory{};
};
struct PlannedPlacement {
  backend::Placement placement{};
  uint64_t device_bytes = 0;  // of weights, K/V and states, at most
  double step_s = 0;          // of one row
};
// free_bytes: of the device, besides its activations. Vectors are there even where nothing else fits.
PlannedPlacement plan_placement(const ArchSpec& spec, const PlacementNeeds& needs, const PlacementCosts& costs,
                                uint64_t free_bytes);

}  // namespace candor::model
