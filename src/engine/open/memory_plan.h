#pragma once
// The memory of an engine, planned from the file's metadata before a weight is read: packed weights, K/V pool, the
// activations of the largest step; beside it what the machine can give. Exact up to the system's page rounding and the
// few megabytes that any process takes.

#include <cstdint>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "base/error.h"
#include "candor/info.h"
#include "candor/options.h"
#include "engine/open/draft_model.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"

namespace candor::engine {

// As the model wants them: of one that reads texts as a whole, steps that hold the longest text, no cache of prefixes,
// no drafts, and no longer texts than its files ask for (text_tokens) where no context was asked for.
EngineOptions fit_options(EngineOptions options, const model::ArchSpec& spec, std::optional<int32_t> text_tokens);

// The draft model, where there is one (else nullptr), gets its slots.
Result<MemoryPlan> plan_memory(const EngineOptions& asked, const formats::ModelFile& file,
                               const backend::Backend& backend, DraftPlan* draft);

// kOutOfMemory with the numbers where the plan exceeds what is available.
Result<void> check_fits(const MemoryPlan& plan);

// "1.25 GB".
std::string gigabytes(uint64_t n_bytes);

// Drafts that one step may check, over all sequences.
int32_t max_drafts(const EngineOptions& options);
// Slots of recurrent states; 0 where no layer has one. Those that sequences and drafts need at most, and those that are
// there for checkpoints alone.
int32_t needed_states(const EngineOptions& options, const backend::StateLayout& layout);
int32_t kept_states(const EngineOptions& options, const backend::StateLayout& layout);
// Rows inside prompts whose logits one step may give (prompt logprobs and the like).
int32_t max_shown_rows(const EngineOptions& options, const model::ArchSpec& spec);
// Rows of logits that one step may give, those included.
int32_t max_out_rows(const EngineOptions& options, const model::ArchSpec& spec);
// The arena that fits every step of the model, and of the draft model where there is one (nullptr: none).
backend::ArenaLayout step_arena(const EngineOptions& options, const model::ArchSpec& spec, const model::ArchSpec* draft,
                                int32_t n_ctx);
}  // namespace candor::engine
