#include "candor/engine.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/fault.h"
#include "base/sha256.h"
#include "candor/version.h"
#include "constrain/constraint.h"
#include "constrain/grammar_constraint.h"
#include "constrain/masked_constraint.h"
#include "engine/engine_impl.h"
#include "engine/open/adapter_loading.h"
#include "engine/open/device_choice.h"
#include "engine/open/draft_model.h"
#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"
#include "engine/open/rank_places.h"
#include "engine/request/active_request.h"
#include "engine/request/inbox.h"
#include "engine/request/request_check.h"
#include "sandbox/helper_pool.h"
#include "text/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace candor {
namespace {

kv::PrefixKey prefix_key(const engine::LoadedModel& loaded) {
  kv::PrefixKey key;
  key.model_hash = loaded.model->hash();
  key.numerics_version = kNumericsVersion;
  key.kv_type = static_cast<int32_t>(loaded.kv->layout().type);
  return key;
}

std::unique_ptr<engine::ImageStore> make_images(const engine::LoadedModel& loaded, engine::Inbox& inbox) {
  if (loaded.vision == nullptr) return nullptr;
  return std::make_unique<engine::ImageStore>(*loaded.vision, loaded.options.image_cache_bytes,
                                              [&inbox] { inbox.wake(); });
}

std::unique_ptr<engine::ImageReader> make_image_reader(const engine::LoadedModel& loaded, engine::ImageStore* store,
                                                       sandbox::HelperPool& helpers) {
  if (store == nullptr) return nullptr;
  return std::make_unique<engine::ImageReader>(*loaded.vision, *store, helpers);
}

// Collects the events of one request until the last.
class Collector {
 public:
  Collector(const Engine::Callback& observer, int32_t n_choices) : observer_(observer) {
    completion_.more_choices.resize(static_cast<size_t>(std::max(1, n_choices) - 1));
  }

  // What throws here ends the request in an error, and so does a fault in its last event.
  void on_event(const TokenEvent& event) {
    try {
      if (observer_) observer_(event);
      add(event);
    } catch (...) {
      if (!event.summary) throw;
      if (!error_) error_ = error_of_exception();
    }
    if (event.summary) end();
  }

  Result<Completion> wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return is_done_; });
    if (error_) return *error_;
    return std::move(completion_);
  }

 private:
  void add(const TokenEvent& event) {
    add(event, event.choice == 0 ? completion_ : completion_.more_choices[static_cast<size_t>(event.choice) - 1]);
    if (!event.prompt_logprobs.empty()) completion_.prompt_logprobs = event.prompt_logprobs;
    if (!event.embedding.empty()) completion_.embedding = event.embedding;
    if (!event.prompt_rows.empty()) completion_.prompt_rows = event.prompt_rows;
    if (event.error) error_ = event.error;
    completion_.request = event.request;
    if (event.summary) completion_.summary = *event.summary;
  }
  static void add(const TokenEvent& event, CompletedChoice& choice) {
    choice.text += event.text;
    if (event.token >= 0) choice.tokens.push_back(event.token);
    if (event.logprob) {
      choice.logprobs.push_back(*event.logprob);
      choice.top_logprobs.push_back(event.top_logprobs);
    }
    if (!event.finish) return;
    choice.finish = *event.finish;
    choice.stop_index = event.stop_index;
    choice.score = event.score;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    ended_.notify_one();
  }

  const Engine::Callback& observer_;
  Completion completion_;
  std::optional<Error> error_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_done_ = false;  // guarded by mutex_
};

}  // namespace

Engine::Impl::Impl(engine::LoadedModel loaded_model, const sandbox::HelperOptions& helper_options)
    : loaded(std::move(loaded_model)),
      store(engine::open_store(loaded.options, *loaded.kv)),
      helpers(helper_options),
      inbox(loaded.options.max_running + loaded.options.max_queued),
      images(make_images(loaded, inbox)),
      image_reader(make_image_reader(loaded, images.get(), helpers)),
      reader(*loaded.file, *loaded.tokenizer, helpers, image_reader.get()),
      info(engine::describe(loaded)),
      limits{.tokenizer = loaded.tokenizer.get(),
             .n_ctx = loaded.n_ctx(),
             .n_vocab = info.n_vocab,
             .dim = info.dim,
             .max_choices = std::min(kMaxChoices, loaded.options.max_running + loaded.options.max_queued),
             .max_running = loaded.options.max_running,
             .info = &info,
             .reading = &info.reading,
             .label_pooling = loaded.head.label_pooling,
             .label_pad = loaded.head.label_pad,
             .key = prefix_key(loaded),
             .adapters = &adapters,
             .images = image_reader.get()},
      loop(loaded, inbox, adapters, metrics, clock, store.store, images.get()) {
  info.has_chat_template = reader.has_template();
  info.chat_template = reader.template_source();
  if (!info.chat_template.empty()) info.chat_template_digest = to_hex(sha256(info.chat_template));
  info.chat_template_error = reader.template_error();
}

Engine::Impl::~Impl() {
  inbox.close();
  if (thread.joinable()) thread.join();
}

Result<std::unique_ptr<Engine>> Engine::Impl::open(const EngineOptions& options,
                                                   const engine::BackendFactory& make_backend, const Progress& progress,
                                                   const sandbox::HelperOptions& helper_options) {
  return guarded([&]() -> Result<std::unique_ptr<Engine>> {
    const engine::HeldPlace held;  // the engine thread and those that compute are bound, the caller is not
    CANDOR_ASSIGN(auto loaded, engine::load_model(options, make_backend, progress));
    auto impl = std::make_unique<Impl>(std::move(loaded), helper_options);
    CANDOR_TRY(impl->loaded.file->check_intact());
    for (const engine::PlacedAdapter& placed : impl->loaded.adapters) {
      CANDOR_TRY(impl->adapters.add(placed.info, placed.id));
    }
    impl->thread = std::thread([loop = &impl->loop] { loop->run(); });
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  });
}

Result<RequestId> Engine::Impl::submit(const Request& request, Callback callback) {
  auto id = submit_checked(request, std::move(callback));
  if (id) return id;
  metrics.n_refused.add();
  if (id.error().kind == ErrorKind::kOverloaded) metrics.n_overloaded.add();
  return id;
}

Result<RequestId> Engine::Impl::submit_checked(const Request& request, Callback callback) {
  auto active = read_request(request);
  if (!active) return active.error();
  (*active)->callback = callback ? std::move(callback) : [](const TokenEvent&) {};
  return inbox.submit(std::move(*active));
}

Result<std::unique_ptr<engine::ActiveRequest>> Engine::Impl::read_request(const Request& request) {
  const engine::Inbox::Reading reading(inbox);
  const int64_t now_ns = clock.now_ns();
  int64_t decoded_ns = now_ns, rendered_ns = now_ns;
  auto prompt = reader.read(request.prompt, request.images, [&](engine::ReadPart part) {
    rendered_ns = clock.now_ns();
    if (part == engine::ReadPart::kImages) decoded_ns = rendered_ns;
  });
  if (!prompt) return prompt.error();
  const int64_t read_ns = clock.now_ns();
  const auto n_truncated = engine::truncate_prompt(request, *loaded.tokenizer, *prompt);
  if (!n_truncated) return n_truncated.error();
  auto active = engine::prepare_request(request, std::move(*prompt), limits, now_ns);
  if (!active) return active.error();
  (*active)->watch.on_read(decoded_ns, rendered_ns, read_ns);
  (*active)->summary.usage.truncated_tokens = *n_truncated;
  if (request.constraint) {
    if (auto constrained = constrain_choices(*request.constraint, **active); !constrained) return constrained.error();
  }
  return active;
}

Result<void> Engine::Impl::check_room(int32_t n_coming) {
  auto room = inbox.check_room(n_coming);
  if (!room) {
    metrics.n_refused.add();
    metrics.n_overloaded.add();
  }
  return room;
}

Result<const constrain::GrammarCompiler*> Engine::Impl::compiler() {
  const std::lock_guard lock(compiler_mutex);
  if (grammar_compiler == nullptr) {
    auto created = constrain::GrammarCompiler::create(*loaded.tokenizer, helpers);
    if (!created) return fail(std::move(created).error(), "constraint");
    grammar_compiler = std::move(*created);
  }
  return grammar_compiler.get();
}

Result<std::unique_ptr<constrain::Constraint>> Engine::Impl::compile(const ConstraintSpec& spec) {
  const auto grammar = compiler();
  if (!grammar) return grammar.error();
  auto constraint = (*grammar)->compile(spec.kind, spec.source);
  if (!constraint) return fail(std::move(constraint).error(), "constraint");
  return std::move(*constraint);
}

// With their first masks, which are those of their first tokens or of the first behind their reasoning.
Result<void> Engine::Impl::constrain_choices(const ConstraintSpec& spec, engine::ActiveRequest& request) {
  auto compiled = make_constraint ? make_constraint(spec) : compile(spec);
  if (!compiled) return compiled.error();
  auto idle = constrain::GrammarCompiler::without_effect(spec.kind, spec.source);
  if (!idle) return fail(std::move(idle).error(), "constraint");
  for (const std::string& words : *idle) {
    const std::string message = "constraint: " + words + ", and has no effect";
    if (spec.is_strict) return Error{ErrorKind::kUnsupported, message, "constraint"};
    request.summary.warnings.push_back(message);
  }
  const auto first = constrain::MaskedConstraint::start(std::move(*compiled), loaded.n_vocab());
  for (int32_t i = 1; i < request.n_choices(); ++i) {
    auto forked = first->fork();
    if (!forked) return fail(std::move(forked).error(), "constraint");
    request.choice(i).constraint = std::move(*forked);
  }
  request.choice(0).constraint = first;
  return {};
}

// What can be done on the caller's thread is: the engine thread only takes the matrices in.
Result<AdapterInfo> Engine::Impl::load_adapter(const AdapterSource& source) {
  if (loaded.backend->info().n_ranks > 1) {
    return Error{ErrorKind::kUnsupported,
                 "with several ranks adapters are loaded when the engine is opened: name it there", "adapters"};
  }
  CANDOR_TRY(adapters.check_free(source.name));
  CANDOR_ASSIGN(auto read, engine::read_adapter(source, loaded.options, loaded.model->spec(), *loaded.file));
  CANDOR_TRY(engine::check_adapter_fits(read, loaded.model->spec(), *loaded.backend));
  std::promise<Result<AdapterInfo>> done;
  const auto place = [&]() -> Result<AdapterInfo> {
    CANDOR_ASSIGN(engine::PlacedAdapter placed, engine::place_adapter(std::move(read), *loaded.model));
    return adapters.add(std::move(placed.info), placed.id);
  };
  const bool is_open = inbox.run_task([&] { done.set_value(guarded(place)); });
  if (!is_open) return Error{ErrorKind::kCancelled, "the engine is shutting down", {}};
  return done.get_future().get();
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<MemoryPlan> Engine::plan(const EngineOptions& options) {
  CANDOR_TRY(engine::check_options(options));
  CANDOR_ASSIGN(const auto file, engine::open_model_file(options));
  const engine::HeldPlace held;
  CANDOR_ASSIGN(const auto backend, engine::make_named_backend(options));
  const EngineOptions chosen = engine::choose_drafts(options, *file);
  CANDOR_ASSIGN(auto draft, engine::open_draft(chosen, *file, *backend));
  return engine::plan_memory(chosen, *file, *backend, draft ? &*draft : nullptr);
}

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options, const Progress& progress) {
  return Impl::open(options, engine::make_named_backend, progress);
}

Result<std::unique_ptr<Engine>> engine::open_with_backend(const EngineOptions& options,
                                                          const BackendFactory& make_backend,
                                                          const Engine::Progress& progress) {
  return Engine::Impl::open(options, make_backend, progress);
}

Result<std::unique_ptr<Engine>> engine::open_with_helpers(const EngineOptions& options,
                                                          const sandbox::HelperOptions& helper_options) {
  return Engine::Impl::open(options, make_named_backend, {}, helper_options);
}

Result<std::unique_ptr<Engine>> engine::open_with_constraints(const EngineOptions& options, ConstraintFactory make) {
  auto opened = Engine::open(options);
  if (opened) Engine::Impl::of(**opened).make_constraint = std::move(make);
  return opened;
}

Result<RequestId> Engine::submit(const Request& request, Callback callback) {
  return guarded([&] { return impl_->submit(request, std::move(callback)); });
}

Result<void> Engine::check_room(int32_t n_coming) {
  return guarded([&] { return impl_->check_room(n_coming); });
}

Result<void> Engine::cancel(RequestId request) {
  return guarded([&]() -> Result<void> {
    if (impl_->inbox.cancel(request)) return {};
    return Error{ErrorKind::kNotFound, "request " + std::to_string(request) + " is not in work", "request"};
  });
}

Result<Completion> Engine::generate(const Request& request, const Callback& callback) {
  if (std::this_thread::get_id() == impl_->thread.get_id()) {
    return Error{ErrorKind::kInvalidInput, "generate() called from a callback; use submit()", {}};
  }
  return guarded([&]() -> Result<Completion> {
    Collector collector(callback, request.n);
    auto id = submit(request, [&collector](const TokenEvent& event) { collector.on_event(event); });
    if (!id) return id.error();
    return collector.wait();
  });
}

void Engine::stop_preparing() {
  impl_->helpers.stop();
}

Result<std::string> Engine::apply_template(const ChatPrompt& chat) const {
  return guarded([&] { return impl_->reader.render(chat); });
}

Result<std::vector<TokenId>> Engine::tokenize(const Prompt& prompt) const {
  return guarded([&]() -> Result<std::vector<TokenId>> {
    auto read = impl_->reader.read(prompt, {});
    if (!read) return read.error();
    return std::move(read->tokens);
  });
}

Result<std::string> Engine::detokenize(std::span<const TokenId> tokens) const {
  return guarded([&]() -> Result<std::string> {
    const text::Tokenizer& tokenizer = *impl_->loaded.tokenizer;
    if (auto checked = engine::check_tokens(tokens, tokenizer); !checked) return checked.error();
    return text::detokenize(tokenizer, tokens, true);
  });
}

std::string_view Engine::piece(TokenId token) const {
  const text::Tokenizer& tokenizer = *impl_->loaded.tokenizer;
  return token >= 0 && token < tokenizer.n_vocab() ? tokenizer.piece(token) : std::string_view{};
}

std::string_view Engine::token_bytes(TokenId token) const {
  const text::Tokenizer& tokenizer = *impl_->loaded.tokenizer;
  return token >= 0 && token < tokenizer.n_vocab() ? tokenizer.bytes_of(token) : std::string_view{};
}

Result<AdapterInfo> Engine::load_adapter(const AdapterSource& source) {
  if (std::this_thread::get_id() == impl_->thread.get_id()) {
    return Error{ErrorKind::kInvalidInput, "load_adapter() called from a callback", {}};
  }
  return guarded([&] { return impl_->load_adapter(source); });
}

Result<void> Engine::drop_adapter(std::string_view name) {
  return guarded([&]() -> Result<void> {
    if (auto dropped = impl_->adapters.drop(name); !dropped) return dropped.error();
    impl_->inbox.wake();
    return {};
  });
}

std::vector<AdapterInfo> Engine::adapters() const {
  return impl_->adapters.list();
}

const ModelInfo& Engine::info() const {
  return impl_->info;
}
std::optional<PromptProgress> Engine::prompt_progress(RequestId request) const {
  return impl_->inbox.prompt_progress(request);
}
EngineStats Engine::stats() const {
  return impl_->loop.stats();
}
DeviceStats Engine::device() const {
  return impl_->loaded.backend->device_stats();
}
Result<void> Engine::health() const {
  return impl_->loaded.backend->health();
}
EngineMetrics Engine::metrics() const {
  return impl_->metrics.snapshot();
}
Result<VisionInfo> Engine::vision_info() const {
  if (impl_->image_reader != nullptr) return guarded([&] { return impl_->image_reader->info(); });
  return Error{ErrorKind::kUnsupported, "this is a text model, it takes no images", {}};
}
ImageStats Engine::image_stats() const {
  return impl_->images == nullptr ? ImageStats{} : impl_->images->stats();
}

DiskCacheStats Engine::disk_cache() const {
  DiskCacheStats stats = impl_->loop.disk_cache();
  if (!stats.is_on) stats.problem = impl_->store.problem;
  return stats;
}
Result<std::int64_t> Engine::save_cache() {
  if (std::this_thread::get_id() == impl_->thread.get_id()) {
    return Error{ErrorKind::kInvalidInput, "save_cache() called from a callback", {}};
  }
  return guarded([&]() -> Result<std::int64_t> {
    if (const DiskCacheStats stats = disk_cache(); !stats.is_on) {
      const std::string why = stats.problem.empty() ? "the engine was opened without one" : stats.problem;
      return Error{ErrorKind::kUnsupported, "there is no cache on disk: " + why, "cache_dir"};
    }
    std::promise<std::int64_t> done;
    const bool is_open = impl_->inbox.run_task([&] { done.set_value(impl_->loop.begin_saving()); });
    if (!is_open) return Error{ErrorKind::kCancelled, "the engine is shutting down", {}};
    return done.get_future().get();
  });
}
void Engine::on_step(StepCallback callback) {
  impl_->loop.on_step(std::move(callback));
}

}  // namespace candor
