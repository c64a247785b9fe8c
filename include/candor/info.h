#pragma once
// What an engine says about itself: the memory that it plans to take, the model that it opened, each step, and totals.
// Plain values: any thread. Sizes are in bytes, times in milliseconds, counts of tokens unless a name says otherwise.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "candor/drafts.h"
#include "candor/ids.h"
#include "candor/options.h"
#include "candor/reading.h"

namespace candor {

// What an engine takes of the machine's memory, known before a weight is read.
struct MemoryPlan {
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t state_bytes = 0;         // recurrent states: two slots a sequence, one a draft, and those that are kept
  std::uint64_t scratch_bytes = 0;       // activations of the largest step
  std::uint64_t draft_bytes = 0;         // weights and K/V of the draft model
  std::uint64_t adapter_bytes = 0;       // of EngineOptions::adapters
  std::uint64_t copy_bytes = 0;          // weights in another type or order than the file's, until they are packed
  std::uint64_t kv_bytes_per_token = 0;  // over all layers, with the padding
  std::uint64_t kv_padding_per_token = 0;  // of it, one head beyond the model's, so that blocks lie apart in caches
  std::int32_t n_ctx = 0;                  // longest context
  std::int32_t kv_blocks = 0;
  std::int32_t kv_block_tokens = 0;
  std::int32_t state_slots = 0;  // 0: no layer is recurrent
  std::int32_t kept_states = 0;  // of the slots, those beside what sequences and drafts need at most
  std::string kv_type{};
  std::uint64_t available_bytes = 0;  // what can be taken without swapping, within the cgroup's limit; 0 = unknown
  std::uint64_t limit_bytes = 0;      // of the cgroup; 0 = none
  std::string device{};               // whose memory this is; "": the host's

  // At the worst moment: copies are gone before anything but weights takes memory.
  std::uint64_t total_bytes() const {
    return weight_bytes + std::max(copy_bytes, kv_bytes + state_bytes + scratch_bytes + draft_bytes + adapter_bytes);
  }
  bool fits() const { return available_bytes == 0 || total_bytes() <= available_bytes; }
};

// Marks of a vocabulary for a text that is to be filled in between two others; -1 where it has none.
struct FimTokens {
  TokenId prefix = -1;
  TokenId suffix = -1;
  TokenId middle = -1;
  TokenId pad = -1;
  TokenId repo = -1;       // before a repository's name
  TokenId separator = -1;  // before a file's name

  bool exist() const { return prefix >= 0 && suffix >= 0 && middle >= 0; }
};

struct ModelInfo {
  std::vector<std::filesystem::path> paths{};
  std::string format{};               // "GGUF v3"
  std::string family{};               // "llama"
  std::string tokenizer{};            // "SentencePiece"
  std::string backend{};              // "cpu"
  std::string backend_description{};  // "avx512-vnni, 2 threads"
  std::string device_note{};          // why the CPU computes although a GPU was to be tried; often nothing
  std::uint64_t file_bytes = 0;
  std::uint64_t weight_bytes = 0;       // as packed by the backend
  std::uint64_t kv_bytes = 0;           // allocated for K/V
  std::vector<DraftSource> drafters{};  // empty: nothing is drafted but what callers predict
  std::filesystem::path draft_path{};   // of the draft model or head, where it has a file of its own
  std::int64_t draft_parameters = 0;
  std::int64_t n_parameters = 0;
  std::int64_t used_parameters = 0;     // that one token computes with: of experts those that it goes to
  std::uint64_t used_weight_bytes = 0;  // the same as packed
  std::string arithmetic{};             // of most products with them: "int8", "bf16" or "f32"
  std::int32_t n_fast_matrices = 0;     // read as EngineOptions::fast_weights asks
  std::int32_t n_layers = 0;
  std::int32_t dim = 0;
  std::int32_t n_vocab = 0;
  std::int32_t n_ctx_train = 0;
  std::int32_t n_ctx = 0;
  std::int32_t n_threads = 0;
  std::int32_t kv_blocks = 0;
  std::int32_t kv_block_tokens = 0;
  std::string kv_type{};  // "bf16"
  TokenId bos = -1;       // -1 where the model has none
  std::vector<TokenId> end_tokens{};
  bool adds_bos = false;
  TokenId eos = -1;  // one of the end tokens: the vocabulary's own; -1 where it has none
  TokenId pad = -1;
  FimTokens fim{};
  ReadingInfo reading{};
  std::string images{};          // the projector of a model that takes images, "gemma3"; empty: it takes none
  bool shows_attention = false;  // SamplingParams::attention is known: with images, where one rank computes
  bool has_chat_template = false;
  std::string chat_template{};         // as the file has it
  std::string chat_template_digest{};  // its SHA-256, hexadecimal; empty: there is none
  std::string chat_template_error{};   // why messages are refused although the file has a template
  std::string response_template{};     // how its maker says that answers are taken apart, as JSON; often none
  std::uint64_t hash = 0;              // of the architecture and the weights
  StepCosts costs{};                   // in effect
};

// How much of a request's prompt is read, as of the last step that began.
struct PromptProgress {
  std::int64_t n_prompt = 0;
  std::int64_t n_cached = 0;  // of them, found in the prefix cache
  std::int64_t n_read = 0;    // of them, computed or found
};

// One pass of the step loop.
struct StepReport {
  std::int64_t step = 0;
  std::int32_t n_rows = 0;
  std::int32_t n_prefill_rows = 0;  // of them, rows whose token was known before
  std::int32_t n_draft_rows = 0;    // of them, drafts
  std::int32_t n_sequences = 0;
  std::int32_t n_sampled = 0;
  std::int32_t n_finished = 0;
  std::int32_t n_preempted = 0;
  double expected_ms = 0;  // of compute_ms, by the costs in effect
  double plan_ms = 0;
  double compute_ms = 0;
  double pick_ms = 0;
};

// Who is told of each step.
using StepCallback = std::function<void(const StepReport&)>;
// Who is told of loading: bytes packed so far, bytes in all; called on the caller's thread.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

// The prefix cache on disk (EngineOptions::cache_dir). Totals since open() of this engine; bytes and blocks of the
// folder, whoever wrote them.
struct DiskCacheStats {
  bool is_on = false;
  std::string problem{};             // why it is off, or what the last write met
  std::int64_t tokens_restored = 0;  // that were read and not computed
  std::int64_t read_bytes = 0;
  double read_ms = 0;
  double saved_ms = 0;  // what computing those tokens would have taken, by the costs in effect
  std::int64_t written_bytes = 0;
  std::int64_t blocks_damaged = 0;    // whose checksum did not fit: computed again
  std::int64_t blocks_unwritten = 0;  // no room to write them, or another process writes
  std::int64_t folder_bytes = 0;
  std::int64_t folder_blocks = 0;
};

// The part of a model that reads images.
struct VisionInfo {
  std::string family{};           // ModelInfo::images
  std::uint64_t fingerprint = 0;  // of tower, projector and preparation
  std::string preparation{};      // how pixels become patches, in one line
};

// Images of requests. Totals since open(), and what stands now.
struct ImageStats {
  std::int64_t n_encoded = 0;
  std::int64_t n_reused = 0;  // that had been encoded before
  double encode_ms = 0;
  std::int64_t cached_bytes = 0;
  std::int64_t tower_bytes = 0;  // weights, K/V and activations; 0 before the first image
};

// A device with memory of its own that computes the model, or its part of it: of several ranks, that of rank 0. Totals
// since open(), and what stands now.
struct DeviceStats {
  std::string name{};                 // "NVIDIA H100 80GB HBM3"; empty: the host computes alone
  std::uint64_t memory_bytes = 0;     // of the device
  std::uint64_t free_bytes = 0;       // of them, left by all processes
  std::uint64_t weight_bytes = 0;     // taken by this engine
  std::uint64_t kv_bytes = 0;         // the same, for K/V and recurrent states
  std::uint64_t work_bytes = 0;       // the same, for what a step computes
  std::uint64_t copied_in_bytes = 0;  // from the host
  std::uint64_t copied_out_bytes = 0;
  std::uint64_t launches = 0;        // of kernels one by one
  std::uint64_t graph_launches = 0;  // of a step's kernels together
};

// Totals since open(), and what stands now.
struct EngineStats {
  std::int64_t n_steps = 0;
  std::int64_t n_rows = 0;
  std::int64_t n_sampled = 0;
  std::int64_t token_layers = 0;
  std::int64_t n_submitted = 0;
  std::int64_t n_finished = 0;
  std::int64_t n_preemptions = 0;
  std::int64_t cached_tokens = 0;
  std::int32_t n_waiting = 0;
  std::int32_t n_running = 0;
  std::int32_t kv_blocks_used = 0;    // held by requests
  std::int32_t kv_blocks_cached = 0;  // held by the prefix cache alone, free to take
  std::int32_t kv_blocks_total = 0;
  std::int32_t state_slots_used = 0;   // of recurrent states, held by requests
  std::int32_t state_slots_total = 0;  // 0: no layer is recurrent
  std::int32_t checkpoints = 0;        // states kept at the ends of K/V blocks, for requests with the same prefix
};

}  // namespace candor
