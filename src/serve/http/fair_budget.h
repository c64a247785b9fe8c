#pragma once
// An amount shared fairly between API keys: bytes in flight, answer slots, slots in a queue. A key that holds nothing
// may take whatever is free. With several keys, a quarter of the limit is kept for keys that hold little: a key above
// its even part of that quarter cannot take from it, and gets at most an even share of the limit while other keys hold
// something.
//
// Share::grow() and resize() may exceed the limit, so that admitted work can finish; nothing new is admitted meanwhile.
// Any thread.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace candor::http {

class FairBudget {
 public:
  // n_keys: 0 where none is asked for: all are one. most_per_key: 0 for no limit beyond the fair share.
  FairBudget(int64_t limit, size_t n_keys, int64_t most_per_key = 0);
  FairBudget(const FairBudget&) = delete;
  FairBudget& operator=(const FairBudget&) = delete;

  // The amount that one holder has, given back when this is destroyed. The budget outlives it; two threads must not
  // change it at once.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(key_, other.key_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Share() { resize(0); }

    int64_t amount() const { return amount_; }
    // False, with nothing changed, when there is no room.
    bool try_grow(int64_t more);
    // For admitted work: always succeeds.
    void grow(int64_t more) { resize(amount_ + more); }
    void resize(int64_t amount);
    // All holders together have more than the limit.
    bool is_exceeded() const { return budget_ != nullptr && budget_->used() > budget_->limit(); }

   private:
    friend class FairBudget;
    FairBudget* budget_ = nullptr;
    size_t key_ = 0;
    int64_t amount_ = 0;
  };

  // A share of nothing yet. key: -1 without one.
  Share share_of(int32_t key);
  // Whether try_grow() of a share of that key would succeed now.
  bool has_room(int32_t key, int64_t more) const;

  int64_t limit() const { return limit_; }
  // The most that one key can hold.
  int64_t most_per_key() const { return most_per_key_; }
  int64_t used() const;

 private:
  // REQUIRES: mutex_ is held.
  bool fits(size_t key, int64_t more) const;
  void change(size_t key, int64_t by);

  // Constant after construction.
  const int64_t limit_;
  const int64_t reserve_;
  const int64_t most_per_key_;
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::vector<int64_t> of_key_;  // [0]: without a key
  int64_t used_ = 0;
  int64_t n_active_ = 0;  // keys that hold something
};

}  // namespace candor::http
