// How the registry loads models and lets them go: the one thread that does both.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "candor/engine.h"
#include "serve/core/api.h"
#include "serve/core/api_request.h"
#include "serve/core/model_entry.h"
#include "serve/core/model_form.h"
#include "serve/core/model_loader.h"
#include "serve/core/models.h"
#include "serve/core/served_model.h"
#include "text/chat/forms/tool_form.h"

namespace candor::serve {
namespace {

std::string megabytes(uint64_t bytes) {
  constexpr uint64_t kMega = 1'000'000;
  return fmt::format("{} MB", (bytes + kMega - 1) / kMega);
}

Error cannot_load(const std::string& name, Error error) {
  error.message = fmt::format("the model \"{}\" cannot be loaded: {}", name, error.message);
  error.field = "model";
  return error;
}

}  // namespace

void Models::run() noexcept {
  constexpr std::chrono::milliseconds kBreath{20};  // where there was no memory
  Lock lock(mutex_);
  while (!is_stopped_) {
    try {
      let_expired_go(lock);
      if (is_stopped_) break;  // meanwhile
      if (!queue_.empty()) {
        serve_next(lock);
      } else if (const auto until = next_expiry()) {
        changed_.wait_until(lock, *until);
      } else {
        changed_.wait(lock);
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      changed_.wait_for(lock, kBreath);
    }
  }
}

void Models::serve_next(Lock& lock) {
  const Shared entry = queue_.front();
  Result<void> done{};
  if (entry->served == nullptr && !entry->waiting.empty()) {
    done = guarded([&] { return load(entry, lock); });
    if (!lock.owns_lock()) lock.lock();
    entry->is_loading = false;
  }
  queue_.pop_front();
  entry->is_queued = false;
  if (entry->served != nullptr) return grant(entry, lock);
  if (done) return;  // nobody waits any more
  const bool passes = done.error().kind == ErrorKind::kBusy || done.error().kind == ErrorKind::kCancelled;
  if (!passes) {
    entry->failure = done.error();
    entry->failed_at = Clock::now();
  }
  log_.warning(done.error().message);
  refuse(entry, done.error(), lock);
}

Result<void> Models::load(const Shared& entry, Lock& lock) {
  const ModelSource source = entry->source;
  entry->failure.reset();
  lock.unlock();
  auto planned = loader_->plan(source);
  lock.lock();
  if (!planned) return cannot_load(source.name, planned.error());
  entry->planned_bytes = *planned;
  if (options_.memory_bytes > 0 && *planned > options_.memory_bytes) {
    return cannot_load(
        source.name,
        fail(ErrorKind::kInvalidInput, fmt::format("it needs {}, and all models together may have {}: a smaller model "
                                                   "or context needs less",
                                                   megabytes(*planned), megabytes(options_.memory_bytes))));
  }
  if (auto room = make_room(entry, lock); !room) return room;
  if (is_stopped_) return fail(ErrorKind::kCancelled, "the server is shutting down");
  if (entry->waiting.empty()) return {};
  entry->is_loading = true;
  return open(entry, lock);
}

Result<void> Models::open(const Shared& entry, Lock& lock) {
  const ModelSource source = entry->source;
  const auto began = Clock::now();
  lock.unlock();
  auto opened = loader_->open(source, is_stopped_);
  if (!opened) return lock.lock(), cannot_load(source.name, opened.error());
  Engine& engine = *opened->engine;
  ApiLimits limits = limits_;
  limits.model = source.name;
  limits.aliases = source.aliases;
  limits.take_from(engine.info());
  limits.is_let_go = true;
  limits.is_also = [this, own = source.name](const std::string& name) {
    const std::lock_guard guard(mutex_);
    const Shared found = find_entry(name);
    return found != nullptr && found->source.name == own;
  };
  auto served = std::make_unique<ServedModel>(engine, std::move(limits), parts_, *this, opened->read_limit,
                                              [this, weak = std::weak_ptr(entry)](double seconds) {
                                                if (const auto strong = weak.lock()) set_keep_alive(strong, seconds);
                                              });
  const ModelForm& form = served->core().terms.model_form();
  auto facts = std::make_shared<const ModelFacts>(
      ModelFacts{.info = engine.info(), .shows_tools = form.shows_tools, .has_reasoning = form.output.has_reasoning});
  const std::chrono::duration<double> took = Clock::now() - began;
  log_.info(fmt::format("loaded \"{}\" in {:.1f} s, planned as {}; calls of tools are read in the form {}", source.name,
                        took.count(), megabytes(entry->planned_bytes), text::to_string(form.output.tools)));
  if (!form.own_fault.empty()) log_.warning(fmt::format("{}; it is not followed", form.own_fault));
  if (!engine.info().device_note.empty()) log_.info(engine.info().device_note);
  lock.lock();
  entry->opened = std::move(*opened);
  entry->served = std::move(served);
  entry->facts = std::move(facts);
  entry->is_stale = entry->is_gone || entry->source != source;
  entry->last_used = Clock::now();
  return {};
}

// False where there would be no room without all others.
bool Models::choose_victims(const Entry& wanted, std::vector<Shared>& victims) const {
  uint64_t bytes = wanted.planned_bytes;
  size_t n = 1;
  std::vector<Shared> others;
  for (const auto& [name, entry] : entries_) {
    if (entry->served == nullptr) continue;
    bytes += entry->planned_bytes;
    ++n;
    others.push_back(entry);
  }
  const auto fits = [&] {
    return (options_.memory_bytes == 0 || bytes <= options_.memory_bytes) &&
           (options_.max_loaded == 0 || n <= options_.max_loaded);
  };
  std::ranges::stable_sort(others, {}, [](const Shared& one) { return std::pair(one->n_users > 0, one->last_used); });
  for (const Shared& other : others) {
    if (fits()) break;
    victims.push_back(other);
    bytes -= other->planned_bytes;
    --n;
  }
  return fits();
}

Result<void> Models::make_room(const Shared& entry, Lock& lock) {
  std::vector<Shared> victims;
  if (!choose_victims(*entry, victims))
    return fail(ErrorKind::kBusy, fmt::format("there is no room for the model \"{}\"; try again", entry->source.name));
  if (victims.empty()) return {};
  for (const Shared& victim : victims) victim->is_closing = true;
  const auto is_idle = [&] {
    return std::ranges::all_of(victims, [](const Shared& one) { return one->n_users == 0; });
  };
  changed_.wait_for(lock, options_.room_wait, [&] { return is_stopped_ || entry->waiting.empty() || is_idle(); });
  if (is_idle() && !is_stopped_ && !entry->waiting.empty()) {
    let_go(victims, lock);
    return {};
  }
  for (const Shared& victim : victims) victim->is_closing = false;
  if (entry->waiting.empty() || is_stopped_) return {};
  return fail(ErrorKind::kBusy,
              fmt::format("the model \"{}\" needs {}, which others that are in use do not leave; try again",
                          entry->source.name, megabytes(entry->planned_bytes)));
}

// REQUIRES: nobody uses them.
void Models::let_go(const std::vector<Shared>& gone, Lock& lock) {
  struct Rest {
    OpenedModel opened{};
    std::unique_ptr<ServedModel> served{};  // uses the other
  };
  std::vector<Rest> rests;
  rests.reserve(gone.size());
  std::string names;
  for (const Shared& entry : gone) {
    names += (names.empty() ? "\"" : ", \"") + entry->source.name + "\"";
    rests.push_back({std::move(entry->opened), std::move(entry->served)});
    entry->opened = {};
    entry->is_closing = false;
    entry->is_stale = false;
  }
  std::erase_if(entries_, [](const auto& pair) {
    const Entry& entry = *pair.second;
    return entry.is_gone && entry.served == nullptr && !entry.is_loading && !entry.is_queued;
  });
  lock.unlock();
  rests.clear();
  log_.info("let go of " + names);
  lock.lock();
}

void Models::let_expired_go(Lock& lock) {
  std::vector<Shared> gone;
  const auto now = Clock::now();
  for (const auto& [name, entry] : entries_) {
    if (entry->served == nullptr || entry->n_users > 0 || loader_ == nullptr) continue;
    const std::chrono::duration<double> idle = now - entry->last_used;
    if (entry->is_stale || (entry->keep_alive >= 0 && idle.count() >= entry->keep_alive)) gone.push_back(entry);
  }
  if (!gone.empty()) let_go(gone, lock);
}

std::optional<Models::Clock::time_point> Models::next_expiry() const {
  std::optional<Clock::time_point> next;
  for (const auto& [name, entry] : entries_) {
    if (entry->served == nullptr || entry->n_users > 0) continue;
    if (!entry->is_stale && entry->keep_alive < 0) continue;
    constexpr std::chrono::milliseconds kBehind{1};
    const std::chrono::duration<double> kept(entry->is_stale ? 0.0 : entry->keep_alive);
    const auto at = entry->last_used + std::chrono::duration_cast<Clock::duration>(kept) + kBehind;
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

void Models::grant(const Shared& entry, Lock& lock) {
  while (!entry->waiting.empty()) {
    const auto waiter = entry->waiting.front();
    auto lease = lease_of(entry, true);
    entry->waiting.erase(entry->waiting.begin());
    --n_waiting_;
    lock.unlock();
    waiter->on_model(std::move(lease));
    lock.lock();
  }
}

void Models::refuse(const Shared& entry, const Error& error, Lock& lock) {
  Waiters waiters;
  waiters.swap(entry->waiting);
  n_waiting_ -= waiters.size();
  lock.unlock();
  for (const auto& waiter : waiters) waiter->on_model(error);
  waiters.clear();
  lock.lock();
}

}  // namespace candor::serve
