#pragma once
// The models that a server offers: which exist, which are loaded, and which requests use them. One thread loads models,
// in the order in which requests ask for them. It plans a model's memory first, and unloads others until there is room:
// idle models, the least recently used first. A model in use is never unloaded. Any thread.
//
// Where only models in use could make room, new requests for them wait behind the model that was asked for, so that
// both get their turns.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "candor/engine.h"
#include "obs/log.h"
#include "serve/core/api.h"
#include "serve/core/api_request.h"
#include "serve/core/model_loader.h"
#include "serve/core/served_model.h"

namespace candor::serve {

struct ModelsOptions {
  std::string default_model{};          // "": the first
  double keep_alive = 300;              // of an idle model, in seconds; negative: until its room is needed
  uint64_t memory_bytes = 0;            // for all together, as planned; 0: what the machine has
  size_t max_loaded = 0;                // at once; 0: as many as fit
  std::chrono::milliseconds room_wait{30'000};      // for those in use to end, where they leave no room
  std::chrono::milliseconds failure_memory{5'000};  // what could not be loaded is not tried again for so long
  std::chrono::milliseconds list_age{2'000};        // the list is read again when older, and only then
};

// What was found out about a model when it was loaded.
struct ModelFacts {
  ModelInfo info{};
  bool shows_tools = false;
  bool has_reasoning = false;
};

struct ModelStatus {
  std::string name{};
  std::vector<std::string> names{};  // further ones
  bool is_loaded = false;
  bool is_loading = false;
  int32_t n_users = 0;
  uint64_t file_bytes = 0;
  int64_t modified = 0;                     // seconds since 1970; 0: unknown
  uint64_t planned_bytes = 0;               // 0: not planned yet
  std::optional<double> expires_s{};        // until it is let go, if nobody uses it; absent: it stays
  std::shared_ptr<const ModelFacts> facts;  // nullptr: never loaded yet
};

// A model in use: it stays as long as this is there.
using ModelLease = std::shared_ptr<const Core>;

// A request that waits for a model.
class ModelWaiter {
 public:
  virtual ~ModelWaiter() = default;
  // Once, from any thread, unless it left before. Short.
  virtual void on_model(Result<ModelLease> lease) = 0;
};

class Models {
 public:
  // One model, which is loaded already and stays.
  Models(Engine& engine, const ApiLimits& limits, const ModelParts& parts, double read_limit, const obs::Log& log);
  // Several. limits: what they share.
  Models(ModelLoader& loader, ModelsOptions options, const ApiLimits& limits, const ModelParts& parts,
         const obs::Log& log);
  // REQUIRES: no lease is left.
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  // Only one, which was there at the start.
  bool is_one() const { return loader_ == nullptr; }
  // name: "" for the default. Nothing where the model has to be loaded first: the waiter will be told.
  Result<ModelLease> acquire(const std::string& name, const std::shared_ptr<ModelWaiter>& waiter);
  // False where it was told, or is about to be.
  bool leave(const std::shared_ptr<ModelWaiter>& waiter);
  // In the order of their names; the default one first.
  std::vector<ModelStatus> list();
  std::optional<ModelStatus> find(const std::string& name);
  // Those that are loaded, by name.
  std::vector<std::pair<std::string, ModelLease>> loaded();
  // Of those that are loaded: the first one that can compute no more.
  Result<void> health() const;
  // A further name for a model, until the server ends; and its end. Files are never touched.
  Result<void> add_name(const std::string& name, const std::string& further);
  Result<void> remove_name(const std::string& further);

  // Tells all waiters that the server ends, gives up the load in progress, and loads nothing more.
  void stop_loading();
  // The same, and the thread that loads has ended.
  void close();
  // Engine::stop_preparing() of all.
  void stop_preparing();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry;
  struct Hold;
  using Shared = std::shared_ptr<Entry>;
  using Lock = std::unique_lock<std::mutex>;
  using Waiters = std::vector<std::shared_ptr<ModelWaiter>>;

  void give_back(Entry& entry, bool is_use) noexcept;
  void set_keep_alive(const Shared& entry, double seconds);
  void refresh();
  // All that follow: REQUIRES: mutex_ is held; it is let go where another's code runs.
  Shared find_named(const std::string& name) const;
  // The same, or a loaded one that has an adapter of that name.
  Shared find_entry(const std::string& name) const;
  Error not_found(const std::string& name) const;
  ModelLease lease_of(const Shared& entry, bool is_use);
  ModelStatus status_of(const Entry& entry) const;
  void take_list(std::vector<ModelSource> sources);
  // Of the thread that loads.
  void run() noexcept;
  void serve_next(Lock& lock);
  Result<void> load(const Shared& entry, Lock& lock);
  Result<void> open(const Shared& entry, Lock& lock);
  Result<void> make_room(const Shared& entry, Lock& lock);
  bool choose_victims(const Entry& entry, std::vector<Shared>& victims) const;
  void let_go(const std::vector<Shared>& gone, Lock& lock);
  void let_expired_go(Lock& lock);
  std::optional<Clock::time_point> next_expiry() const;
  void grant(const Shared& entry, Lock& lock);
  void refuse(const Shared& entry, const Error& error, Lock& lock);

  // Constant after construction.
  ModelLoader* const loader_;
  const ModelsOptions options_;
  const ApiLimits limits_;
  const ModelParts parts_;
  const obs::Log& log_;
  std::atomic<bool> is_stopped_{false};

  std::mutex list_mutex_;  // held while the loader lists; before mutex_
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Shared> entries_;
  std::map<std::string, std::string> names_;  // further ones, to an entry's
  std::string default_;
  std::deque<Shared> queue_;  // asked for and not loaded
  size_t n_waiting_ = 0;
  std::optional<Clock::time_point> listed_;

  std::thread thread_;  // last: uses the others
};

}  // namespace candor::serve
