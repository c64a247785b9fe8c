#pragma once
// The adapters of an engine by their names. A request holds those that it uses: one whose name is dropped meanwhile
// stays until the last of them ends. Any thread, but for take_freed().

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "candor/adapters.h"

namespace candor::engine {

class AdapterRegistry {
 public:
  // Of one adapter. Its number is freed with the last holder.
  class Entry {
   public:
    Entry(AdapterInfo info, AdapterId id, AdapterRegistry& registry)
        : info_(std::move(info)), id_(id), registry_(registry) {}
    ~Entry() { registry_.free(id_); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    const AdapterInfo& info() const { return info_; }
    AdapterId id() const { return id_; }

   private:
    const AdapterInfo info_;
    const AdapterId id_;
    AdapterRegistry& registry_;
  };
  using Held = std::shared_ptr<const Entry>;

  // kNotFound names those that are there.
  Result<Held> find(std::string_view name) const;
  std::vector<AdapterInfo> list() const;
  // Whether the name is free, and one more is allowed.
  Result<void> check_free(std::string_view name) const;
  // The number is freed where it is refused.
  Result<AdapterInfo> add(AdapterInfo info, AdapterId id);
  Result<void> drop(std::string_view name);
  // Numbers that nothing uses any more.
  std::vector<AdapterId> take_freed();

 private:
  void free(AdapterId id);

  std::mutex freed_mutex_;
  std::vector<AdapterId> freed_;  // guarded by freed_mutex_; outlives the entries, which write here
  std::atomic<std::int64_t> n_ever_{0};
  mutable std::mutex mutex_;
  std::map<std::string, Held, std::less<>> entries_;  // guarded by mutex_
};

}  // namespace candor::engine
