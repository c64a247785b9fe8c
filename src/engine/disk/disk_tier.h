#pragma once
// The prefix cache's second tier. A prompt whose beginning lies on the disk waits until its blocks are in memory, and
// is then scheduled as if they had always been there; others are computed meanwhile. Blocks that lose their memory, and
// all of them when the engine ends, are written. Bits are a function of the tokens, so that no answer depends on any of
// it. Engine thread only, but for what is said.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/ids.h"
#include "candor/info.h"
#include "engine/disk/disk_worker.h"
#include "kv/block_manager.h"
#include "prefix_store/store.h"
#include "sched/cost_model.h"

namespace candor::engine {

class DiskTier {
 public:
  // store: nullptr for none: then nothing happens. wake: the engine thread, from any other. The memory is borrowed.
  DiskTier(std::shared_ptr<prefix_store::Store> store, backend::KvStore& kv, const sched::CostModel& costs,
           std::function<void()> wake);

  bool is_on() const { return worker_ != nullptr; }
  // Whether blocks of the prompt's beginning, which memory lacks, come from the disk: then the request waits for
  // advance() to name it.
  bool begin(RequestId request, const kv::PrefixKey& key, std::span<const TokenId> beginning, kv::BlockManager& blocks);
  // Brings what was read into memory: beside others that decode no more than their pace allows. Calls
  // `ready(request, tokens)` for each that need not wait any more; so many tokens came from the disk.
  template <class Ready>
  void advance(kv::BlockManager& blocks, bool beside_others, Ready&& ready) {
    for (size_t i = 0; i < restores_.size();) {
      if (!advance(*restores_[i], blocks, beside_others)) {
        ++i;
        continue;
      }
      const std::unique_ptr<Restore> done = std::move(restores_[i]);
      restores_.erase(restores_.begin() + static_cast<std::ptrdiff_t>(i));
      ready(done->request, done->n_tokens);
    }
  }
  bool is_restoring() const { return !restores_.empty(); }
  // Before a step: what the plan takes away is written.
  void save_lost(kv::BlockManager& blocks);
  // All that is in memory is to be written, a part in each save_some(). The number of blocks.
  int64_t begin_saving(const kv::BlockManager& blocks);
  // Between two steps: beside others less at once. Begins by itself where memory fills up, so that blocks are on the
  // disk before many lose their memory at once. False where there is nothing left to do now.
  bool save_some(const kv::BlockManager& blocks, bool beside_others);
  // The engine ends: writes what memory holds.
  void finish(const kv::BlockManager& blocks);
  // The blocks are gone, whatever they held.
  void forget() noexcept;

  // Any thread.
  DiskCacheStats stats() const;

 private:
  struct Restore {
    RequestId request = 0;
    kv::PrefixKey key{};
    kv::BlockTable table{};
    std::shared_ptr<Reading> reading{};
    size_t next = 0;  // of the blocks wanted
    int32_t n_tokens = 0;
  };

  bool advance(Restore& restore, kv::BlockManager& blocks, bool beside_others);
  bool bring(Restore& restore, std::span<const std::byte> payload, kv::BlockManager& blocks);
  std::vector<WantedBlock> find(const kv::PrefixKey& key, std::span<const TokenId> beginning,
                                const kv::BlockTable& table) const;
  bool pays(size_t n_blocks) const;
  void save_part(const kv::BlockManager& blocks, size_t most_bytes);
  void save(BlockId block, StateId state, const kv::PrefixDigest& digest, const kv::PrefixDigest& parent,
            std::span<const TokenId> tokens, const kv::PrefixKey& key);

  // Constant after construction.
  const std::shared_ptr<prefix_store::Store> store_;
  backend::KvStore& kv_;
  const uint64_t block_bytes_;
  const uint64_t state_bytes_;          // 0: no layer is recurrent
  const int64_t compute_ns_;            // of a block's tokens; 0: unknown
  std::unique_ptr<DiskWorker> worker_;  // nullptr: off

  std::vector<std::unique_ptr<Restore>> restores_;
  int32_t n_to_save_ = 0;  // blocks, from the highest id down
  int32_t n_seen_ = 0;     // indexed blocks when that began last
  std::atomic<int64_t> n_restored_tokens_{0};
  std::atomic<int64_t> n_unwritten_{0};
};

}  // namespace candor::engine
