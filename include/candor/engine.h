#pragma once
// The whole library for a C++ user: open a model, submit requests, receive tokens.
//
// Threads: an engine owns one engine thread, which runs the step loop. Every method may be called from any thread.
// Prompts are turned into tokens, and constraints compiled, on the caller's thread. Callbacks run on the engine thread,
// in order for each request: they should be short, and must not destroy the engine; they may submit and cancel. One
// that throws ends its request: its choices get last events with the exception as their error. submit() may deliver its
// first event before it has returned its id. Destroying the engine cancels what runs (each request still gets its last
// event) and joins the thread.
//
// One answer: the same model, prompt, parameters and seed give the same tokens and logprobs, bit for bit, whatever else
// runs beside them, at any number of threads, with any chunking, after any preemption.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "candor/adapters.h"
#include "candor/event.h"
#include "candor/ids.h"
#include "candor/info.h"
#include "candor/metrics.h"
#include "candor/options.h"
#include "candor/request.h"
#include "candor/result.h"

namespace candor {

class Engine {
 public:
  using Progress = LoadProgress;
  using Callback = std::function<void(const TokenEvent&)>;
  using StepCallback = candor::StepCallback;

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

  // Adapters, beside those of EngineOptions. A request that uses one keeps it until its end, so that dropping takes the
  // name away at once and the memory later. An unknown name is kNotFound; one that is there, an adapter of another
  // model or one that does not fit is refused, and nothing changes. Not from a callback. With several ranks only the
  // options load adapters (kUnsupported).
  Result<AdapterInfo> load_adapter(const AdapterSource& source);
  Result<void> drop_adapter(std::string_view name);
  std::vector<AdapterInfo> adapters() const;  // by name

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
  // nullopt for an id that is not in work.
  std::optional<PromptProgress> prompt_progress(RequestId request) const;
  EngineStats stats() const;
  DeviceStats device() const;
  // kOverloaded while there is no room for one answer more beside n_coming that the caller is about to submit: cheaper
  // than a request that is refused, and counted as one.
  Result<void> check_room(std::int32_t n_coming = 0);
  // kBusy of the field "ranks" where one of the ranks that compute the model has ended or does not answer: every
  // request ends with that error from then on, and only another open() mends it.
  Result<void> health() const;
  // Distributions since open(). Costs some microseconds; for a metrics page, not for every token.
  EngineMetrics metrics() const;
  // Of EngineOptions::cache_dir.
  DiskCacheStats disk_cache() const;
  // All 0 where the model takes no images.
  ImageStats image_stats() const;
  // Reads parts of all weights of the tower, the first time. kUnsupported where the model takes no images.
  Result<VisionInfo> vision_info() const;
  // Begins to write what the prefix cache has in memory to the disk, beside what runs; the number of blocks that it
  // has. kUnsupported where there is no cache on disk, with the reason.
  Result<std::int64_t> save_cache();
  // Called on the engine thread after each step; empty = none. What it throws is counted, and that is all.
  void on_step(StepCallback callback);

  struct Impl;  // the library's own

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace candor
