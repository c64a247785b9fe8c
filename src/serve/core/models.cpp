#include "serve/core/model_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "candor/engine.h"
#include "obs/log.h"
#include "serve/core/api.h"
#include "serve/core/api_request.h"
#include "serve/core/model_form.h"

namespace candor::serve {
namespace {

constexpr size_t kMostWaiting = 4096;
constexpr size_t kMostNames = 1024;
constexpr size_t kMostNameBytes = 200;

Error shutting_down() {
  return {ErrorKind::kCancelled, "the server is shutting down"};
}

std::string folded(std::string_view name) {
  std::string lower(untagged(name));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

Models::Models(Engine& engine, const ApiLimits& limits, const ModelParts& parts, double read_limit, const obs::Log& log)
    : loader_(nullptr), limits_(limits), parts_(parts), log_(log), default_(limits.model) {
  const auto entry = std::make_shared<Entry>();
  entry->source = {.name = limits.model, .aliases = limits.aliases, .file_bytes = engine.info().file_bytes};
  entry->served = std::make_unique<ServedModel>(engine, limits, parts, *this, read_limit);
  const ModelForm& form = entry->served->core().terms.model_form();
  entry->facts = std::make_shared<ModelFacts>(
      ModelFacts{.info = engine.info(), .shows_tools = form.shows_tools, .has_reasoning = form.output.has_reasoning});
  entry->planned_bytes = engine.info().weight_bytes + engine.info().kv_bytes;
  entries_.emplace(limits.model, entry);
}

Models::Models(ModelLoader& loader, ModelsOptions options, const ApiLimits& limits, const ModelParts& parts,
               const obs::Log& log)
    : loader_(&loader), options_(std::move(options)), limits_(limits), parts_(parts), log_(log),
      default_(options_.default_model) {
  refresh();
  thread_ = std::thread([this] { run(); });
}

Models::~Models() {
  close();
}

void Models::close() {
  stop_loading();
  if (thread_.joinable()) thread_.join();
}

Models::Shared Models::find_named(const std::string& name) const {
  if (name.empty()) {
    const auto it = entries_.find(default_);
    return it != entries_.end() && !it->second->is_gone ? it->second : nullptr;
  }
  const auto exact = [this](const std::string& one) -> Shared {
    if (const auto it = entries_.find(one); it != entries_.end() && !it->second->is_gone) return it->second;
    const auto further = names_.find(one);
    const auto it = further == names_.end() ? entries_.end() : entries_.find(further->second);
    return it != entries_.end() && !it->second->is_gone ? it->second : nullptr;
  };
  if (auto entry = exact(name)) return entry;
  if (name.size() > kMostNameBytes) return nullptr;
  const std::string wanted = folded(name);
  for (const auto& [own, entry] : entries_) {
    if (entry->is_gone) continue;
    if (folded(own) == wanted) return entry;
    if (std::ranges::any_of(entry->source.aliases, [&](const auto& alias) { return folded(alias) == wanted; }))
      return entry;
  }
  const auto further = std::ranges::find_if(names_, [&](const auto& pair) { return folded(pair.first) == wanted; });
  return further != names_.end() ? exact(further->second) : nullptr;
}

Models::Shared Models::find_entry(const std::string& name) const {
  if (Shared entry = find_named(name)) return entry;
  for (const auto& [own, entry] : entries_) {
    if (entry->is_gone || entry->served == nullptr) continue;
    const auto is_base = [&](const std::string& base) { return find_named(base) == entry; };
    if (entry->served->core().adapters.named_by(name, is_base)) return entry;
  }
  return nullptr;
}

Error Models::not_found(const std::string& name) const {
  constexpr size_t kMostNamed = 8;
  std::string named;
  size_t n = 0;
  for (const auto& [own, entry] : entries_) {
    if (++n <= kMostNamed) named += (named.empty() ? "" : ", ") + clipped(own);
  }
  if (n > kMostNamed) named += fmt::format(" and {} more", n - kMostNamed);
  const std::string there = n == 0 ? "there is none at all" : "there are " + named;
  return {.kind = ErrorKind::kNotFound,
          .message = name.empty() ? "no model was named, and there is no default one: " + there
                                  : fmt::format("the model \"{}\" does not exist here: {}", clipped(name), there),
          .field = "model"};
}

ModelLease Models::lease_of(const Shared& entry, bool is_use) {
  const auto hold = std::make_shared<Hold>();
  hold->entry = entry;
  hold->is_use = is_use;
  hold->models = this;  // from here on nothing throws
  ++entry->n_users;
  return ModelLease(hold, &entry->served->core());
}

void Models::give_back(Entry& entry, bool is_use) noexcept {
  const std::lock_guard lock(mutex_);
  --entry.n_users;
  if (is_use) entry.last_used = Clock::now();
  changed_.notify_all();
}

void Models::set_keep_alive(const Shared& entry, double seconds) {
  const std::lock_guard lock(mutex_);
  entry->keep_alive = seconds;
  changed_.notify_all();
}

Result<ModelLease> Models::acquire(const std::string& name, const std::shared_ptr<ModelWaiter>& waiter) {
  Lock lock(mutex_);
  Shared entry = find_entry(name);
  if (entry == nullptr && loader_ != nullptr) {
    lock.unlock();
    refresh();
    lock.lock();
    entry = find_entry(name);
  }
  if (entry == nullptr) return not_found(name);
  if (entry->served != nullptr && !entry->is_closing) return lease_of(entry, true);
  if (is_stopped_) return shutting_down();
  if (entry->failure && Clock::now() - entry->failed_at < options_.failure_memory) return *entry->failure;
  if (n_waiting_ >= kMostWaiting)
    return fail(ErrorKind::kBusy, fmt::format("{} requests wait for models already; try again", n_waiting_));
  entry->waiting.push_back(waiter);
  ++n_waiting_;
  if (!std::exchange(entry->is_queued, true)) queue_.push_back(entry);
  changed_.notify_all();
  return ModelLease();
}

bool Models::leave(const std::shared_ptr<ModelWaiter>& waiter) {
  const std::lock_guard lock(mutex_);
  for (const Shared& entry : queue_) {
    const size_t n = std::erase(entry->waiting, waiter);
    n_waiting_ -= n;
    if (n == 0) continue;
    if (entry->waiting.empty()) changed_.notify_all();
    return true;
  }
  return false;
}

ModelStatus Models::status_of(const Entry& entry) const {
  ModelStatus status{.name = entry.source.name,
                     .names = entry.source.aliases,
                     .is_loaded = entry.served != nullptr,
                     .is_loading = entry.is_loading,
                     .n_users = entry.n_users,
                     .file_bytes = entry.source.file_bytes,
                     .modified = entry.source.modified,
                     .planned_bytes = entry.planned_bytes,
                     .facts = entry.facts};
  for (const auto& [further, own] : names_) {
    if (own == entry.source.name) status.names.push_back(further);
  }
  if (!status.is_loaded || entry.keep_alive < 0) return status;
  const std::chrono::duration<double> idle = entry.n_users > 0 ? Clock::duration{} : Clock::now() - entry.last_used;
  status.expires_s = std::max(0.0, entry.keep_alive - idle.count());
  return status;
}

std::vector<ModelStatus> Models::list() {
  if (loader_ != nullptr) refresh();
  const std::lock_guard lock(mutex_);
  std::vector<ModelStatus> all;
  for (const auto& [name, entry] : entries_) {
    if (!entry->is_gone) all.push_back(status_of(*entry));
  }
  std::stable_partition(all.begin(), all.end(), [this](const ModelStatus& one) { return one.name == default_; });
  return all;
}

std::optional<ModelStatus> Models::find(const std::string& name) {
  if (loader_ != nullptr) refresh();
  const std::lock_guard lock(mutex_);
  const Shared entry = find_entry(name);
  return entry != nullptr ? std::optional(status_of(*entry)) : std::nullopt;
}

std::vector<std::pair<std::string, ModelLease>> Models::loaded() {
  std::vector<std::pair<std::string, ModelLease>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (entry->served == nullptr || entry->is_closing) continue;
    all.emplace_back(name, nullptr);
    all.back().second = lease_of(entry, false);
  }
  return all;
}

Result<void> Models::health() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) {
    if (entry->served != nullptr) CANDOR_TRY(entry->served->core().engine.health());
  }
  return {};
}

Result<void> Models::add_name(const std::string& name, const std::string& further) {
  if (further.empty() || further.size() > kMostNameBytes || first_invalid_utf8(further) != further.size() ||
      std::ranges::any_of(further, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("the name \"{}\" is none: expected 1 to {} bytes of text", clipped(further), kMostNameBytes),
        "destination");
  }
  const std::lock_guard lock(mutex_);
  const Shared entry = find_entry(name);
  if (entry == nullptr) return fail(not_found(name), "source");
  if (const Shared other = find_entry(further); other != nullptr) {
    if (other == entry) return {};
    return fail(ErrorKind::kInvalidInput,
                fmt::format("\"{}\" is the name of another model already", clipped(further)), "destination");
  }
  if (names_.size() >= kMostNames)
    return fail(ErrorKind::kInvalidInput, fmt::format("there are {} further names already", kMostNames), "destination");
  names_.emplace(further, entry->source.name);
  return {};
}

Result<void> Models::remove_name(const std::string& further) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [wanted = folded(further)](const auto& pair) { return folded(pair.first) == wanted; };
  const auto it = std::ranges::find_if(names_, is_it);
  if (it != names_.end()) {
    names_.erase(it);
    return {};
  }
  if (find_entry(further) == nullptr) return not_found(further);
  return fail(ErrorKind::kUnsupported,
              fmt::format("\"{}\" is not deleted: clients may delete names that /api/copy made, and no model's file",
                          clipped(further)),
              "model");
}

void Models::refresh() {
  const std::lock_guard listing(list_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_ || (listed_ && Clock::now() - *listed_ < options_.list_age)) return;
  }
  auto sources = loader_->list();
  const std::lock_guard lock(mutex_);
  listed_ = Clock::now();
  take_list(std::move(sources));
}

void Models::take_list(std::vector<ModelSource> sources) {
  if (default_.empty() && !sources.empty()) default_ = sources.front().name;
  for (const auto& [name, entry] : entries_) entry->is_gone = true;
  for (ModelSource& source : sources) {
    Shared& entry = entries_[source.name];
    if (entry == nullptr) {
      entry = std::make_shared<Entry>();
      entry->keep_alive = options_.keep_alive;
    } else if (entry->source != source) {
      entry->is_stale = true;
      entry->failure.reset();
      entry->facts.reset();
    }
    entry->is_gone = false;
    entry->source = std::move(source);
  }
  std::erase_if(entries_, [](const auto& pair) {
    Entry& entry = *pair.second;
    entry.is_stale |= entry.is_gone;
    return entry.is_gone && entry.served == nullptr && !entry.is_loading && entry.waiting.empty();
  });
  changed_.notify_all();
}

void Models::stop_loading() {
  Lock lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
  const std::deque<Shared> queue = queue_;
  for (const Shared& entry : queue) refuse(entry, shutting_down(), lock);
}

void Models::stop_preparing() {
  for (const auto& [name, lease] : loaded()) lease->engine.stop_preparing();
}

}  // namespace candor::serve
