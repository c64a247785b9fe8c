#pragma once
// Where a step's activations stand in the arena: a slot each, and how wide it is in a block. Pure functions; any
// thread.

#include <array>
#include <cstdint>

#include "backend/backend.h"
#include "model/arch_spec.h"
#include "model/block.h"

namespace candor::model {

// Those of the head hold one row for each row of logits.
struct Slot {
  enum Index : int32_t {
    kX,
    kH,
    kQ,
    kK,
    kV,
    kHeads,
    kGate,
    kUp,
    kScores,
    kExpertOut,
    kMixed,
    kBranch,
    kJoined,
    kHeadGate,
    kAlpha,
    kBeta,
    kBetaAlpha,
    kSharedGate,
    kSharedUp,
    kSharedScore,
    kQueryLow,
    kQueries,
    kPlainQueries,
    kRotatedQueries,
    kWide,
    kLatentAndKey,
    kLatent,
    kRotatedKey,
    kStateChannels,
    kStateBefore,
    kStateGate,
    kStateStep,
    kStateOut,
    kLayerInputs,
    kLayerProjected,
    kLayerInput,
    kLayerGate,
    kBounded,
    kJoinedVectors,
    kToken,
    kVectors,
    kVectorsBefore,
    kLast,
    kGiven,
    kGuess,
    kLogits,
    kSlots
  };
};

// Columns of each slot in one block.
std::array<int32_t, Slot::kSlots> slot_cols(const ArchSpec& spec, const BlockSpec& block);
BlockActivations activations(const ArchSpec& spec, const BlockSpec& block, int32_t n_rows);

}  // namespace candor::model
