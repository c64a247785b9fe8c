#pragma once
// The whole library for a C++ user: open a model, submit requests, receive tokens.
//
// Threads: an engine owns one engine thread, which runs the step loop. Every method may be called from any thread.
// Prompts are turned into tokens, and constraints compiled, on the caller's thread. Callbacks run on the engine thread,
// in order for each request: they should be short, and must not destroy the engine; they may submit and cancel. One that
// throws ends its request: its choices get last events with the exception as their error. submit() may deliver its
// first event before it has returned its id. Destroying the engine cancels what runs (each request still gets its last
// event) and joins the thread.
//
// One answer: the same model, prompt, parameters and seed give the same tokens and logprobs, bit for bit, whatever else
// runs beside them, at any number of threads, with any chunking, after any preemption.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "candor/event.h"
#include "candor/ids.h"
#include "candor/metrics.h"
#include "candor/options.h"
#include "candor/request.h"
#include "candor/result.h"

namespace candor {

// What an engine takes of the machine's memory, known before a weight is read.
struct MemoryPlan {
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t scratch_bytes = 0;       // activations of the largest step
  std::uint64_t draft_bytes = 0;         // weights and K/V of the draft model
  std::uint64_t copy_bytes = 0;          // weights in another type or order than the file's, until they are packed
  std::uint64_t kv_bytes_per_token = 0;  // over all layers
  std::int32_t n_ctx = 0;                // longest context
  std::int32_t kv_blocks = 0;
  std::int32_t kv_block_tokens = 0;
  std::string kv_type{};
  std::uint64_t available_bytes = 0;  // what can be taken without swapping, within the cgroup's limit; 0 = unknown
  std::uint64_t limit_bytes = 0;      // of the cgroup; 0 = none

  // At the worst moment: copies are gone before anything but weights takes memory.
  std::uint64_t total_bytes() const {
    return weight_bytes + std::max(copy_bytes, kv_bytes + scratch_bytes + draft_bytes);
  }
  bool fits() const { return available_bytes == 0 || total_bytes() <= available_bytes; }
};

struct ModelInfo {
  std::vector<std::filesystem::path> paths{};
  std::string format{};               // "GGUF v3"
  std::string family{};               // "llama"
  std::string tokenizer{};            // "SentencePiece"
  std::string backend{};              // "cpu"
  std::string backend_description{};  // "avx512-vnni, 2 threads"
  std::uint64_t file_bytes = 0;
  std::uint64_t weight_bytes = 0;      // as packed by the backend
  std::uint64_t kv_bytes = 0;          // allocated for K/V
  std::filesystem::path draft_path{};  // of the draft model, where there is one
  std::int64_t draft_parameters = 0;
  std::int64_t n_parameters = 0;
  std::int32_t n_fast_matrices = 0;  // read as EngineOptions::fast_weights asks
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
  bool has_chat_template = false;
  std::string chat_template_error{};  // why messages are refused although the file has a template
  std::uint64_t hash = 0;             // of the architecture and the weights
  StepCosts costs{};                  // in effect
};

// One pass of the step loop.
struct StepReport {
  std::int64_t step = 0;
  std::int32_t n_rows = 0;
  std::int32_t n_prefill_rows = 0;  // of them, rows whose token was known before
  std::int32_t n_draft_rows = 0;    // of them, guesses
  std::int32_t n_sequences = 0;
  std::int32_t n_sampled = 0;
  std::int32_t n_finished = 0;
  std::int32_t n_preempted = 0;
  double expected_ms = 0;  // of compute_ms, by the costs in effect
  double plan_ms = 0;
  double compute_ms = 0;
  double pick_ms = 0;
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
};

class Engine {
 public:
  // bytes packed so far, bytes in all; called on the caller's thread.
  using Progress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;
  using Callback = std::function<void(const TokenEvent&)>;
  using StepCallback = std::function<void(const StepReport&)>;

  // Reads the file's metadata only. open() refuses a plan that does not fit.
  static Result<MemoryPlan> plan(const EngineOptions& options);
  // Reads and packs the model, reserves every buffer, starts the engine thread.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options, const Progress& progress = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Checks everything that can be checked before queueing. After an error nothing was queued and no event comes.
  Result<RequestId> submit(const Request& request, Callback callback);
  // Every choice of the request ends with kCancelled within one step. An id that is not in work is kNotFound.
  Result<void> cancel(RequestId request);
  // Submits and waits for the end; `callback` may be empty. Not from a callback: the engine thread can not wait for
  // itself. A request that ends in an error returns that error.
  Result<Completion> generate(const Request& request, const Callback& callback = {});

  // Templates and constraints that other threads have in work end with kCancelled, and no new ones are taken: for a
  // program that is about to end. Requests that are inside go on.
  void stop_preparing();

  // The prompt that the model's template makes of the messages.
  Result<std::string> apply_template(const ChatPrompt& chat) const;
  // The tokens that submit() would read.
  Result<std::vector<TokenId>> tokenize(const Prompt& prompt) const;
  // Ids outside the vocabulary are refused.
  Result<std::string> detokenize(std::span<const TokenId> tokens) const;
  // As the vocabulary writes it; "" for an id outside of it.
  std::string_view piece(TokenId token) const;
  // The bytes that it stands for in generated text: none for a control token, and perhaps half a code point.
  std::string_view token_bytes(TokenId token) const;

  const ModelInfo& info() const;
  EngineStats stats() const;
  // kOverloaded while there is no room for one answer more beside n_coming that the caller is about to submit: cheaper
  // than a request that is refused, and counted as one.
  Result<void> check_room(std::int32_t n_coming = 0);
  // Distributions since open(). Costs some microseconds; for a metrics page, not for every token.
  EngineMetrics metrics() const;
  // Called on the engine thread after each step; empty = none. What it throws is counted, and that is all.
  void on_step(StepCallback callback);

  struct Impl;  // the library's own

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace candor
