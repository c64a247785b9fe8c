#pragma once
// A folder of segments, as one map from digests to blocks. One store writes at a time (a lock on the folder, from
// append() to end_writing()), any number reads; what others append or remove is seen at the next refresh(). Nothing
// that is read is trusted: a block is given only where header and payload have their checksums and the tokens are those
// asked for.
//
// Over its size, the segment that is worth least goes: the sum of its blocks' tokens x (1 + how often they were found)
// / age. Blocks of it that were found are written again, if they are not most of it. Any thread; find(), blocks() and
// figures() never wait for a disk.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "prefix_store/record.h"
#include "prefix_store/segment.h"

namespace candor::prefix_store {

struct StoreOptions {
  std::filesystem::path folder{};
  uint64_t max_bytes = 0;      // REQUIRES: above 0
  uint64_t segment_bytes = 0;  // 0: an eighth of max_bytes, at most 256 MiB
};

struct StoreFigures {
  uint64_t n_bytes = 0;
  uint64_t n_blocks = 0;
  uint64_t n_segments = 0;
  uint64_t n_unsound_bytes = 0;  // that hold no block
  uint64_t n_damaged = 0;        // blocks whose checksum did not fit when they were read
  uint64_t n_unwritten = 0;      // blocks that could not be written: the disk is full, another process writes
  uint64_t n_removed = 0;        // segments that made room
  std::string last_problem{};    // of a write
};

class Store {
 public:
  // Makes the folder (its owner's alone) where it is not there. Refuses one that is another user's or others may write
  // to, and what is no folder.
  static Result<std::unique_ptr<Store>> open(const StoreOptions& options);
  ~Store();

  std::optional<RecordHeader> find(const Digest& digest) const;
  // The block of these tokens behind that parent; false where it is not there, or damaged: then it is forgotten.
  bool read(const Digest& digest, const Digest& parent, std::span<const int32_t> tokens,
            std::vector<std::byte>& payload);
  // Seals the header and appends, unless the digest is there. False where it was not written; figures() say why.
  bool append(RecordHeader header, std::span<const std::byte> payload);
  // Others may write from now on, until the next append(): for who has nothing to write for a while.
  void end_writing();
  // What other processes did, at most once a second unless `at_once`. As append() and remove_if(): waits for the disk.
  void refresh(bool at_once = false);
  // Removes the blocks for which it says so; their number. nullopt where another process writes, or nothing can be.
  std::optional<uint64_t> remove_if(const std::function<bool(const RecordHeader&)>& test);
  // Every block, in no order.
  std::vector<RecordPlace> blocks() const;
  StoreFigures figures() const;
  const std::filesystem::path& folder() const { return options_.folder; }

 private:
  struct Entry {
    RecordPlace place{};
    std::shared_ptr<Segment> segment{};
    uint64_t n_found = 0;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Segments = std::map<uint64_t, std::shared_ptr<Segment>>;  // by their numbers

  explicit Store(const StoreOptions& options);
  // REQUIRES, all: io_mutex_ is held, and mutex_ is not.
  void look();
  bool begin_writing();
  bool make_segment();
  bool write(const RecordHeader& header, std::span<const std::byte> payload);
  void make_room(uint64_t n_bytes);
  std::shared_ptr<Segment> least_worth();
  uint64_t remove_where(const std::function<bool(const RecordHeader&)>& test);
  void remove(const std::shared_ptr<Segment>& segment, std::span<const RecordPlace> kept);
  void merge_small();
  void close_segment();
  void note(const Error& error);
  void count_unwritten();
  // Each takes mutex_ for what it copies.
  Segments segments() const;
  std::vector<RecordPlace> places_of(const std::shared_ptr<Segment>& segment, bool only_found = false) const;
  uint64_t n_bytes() const;
  // REQUIRES: mutex_ is held.
  void forget(const std::shared_ptr<Segment>& segment);

  const StoreOptions options_;
  // Held while the folder is read or changed. Never waited for by who holds mutex_.
  std::mutex io_mutex_;
  Descriptor lock_;
  std::shared_ptr<Segment> active_;  // what this process appends to; nullptr: nothing yet
  uint64_t next_number_ = 1;         // above all that were ever seen
  int64_t looked_at_ns_ = 0;
  int64_t silent_until_ns_ = 0;  // after a write that failed
  // Held for as long as memory is looked at, so that who asks what there is never waits for a disk.
  mutable std::mutex mutex_;
  std::map<Digest, Entry> entries_;
  Segments segments_;
  StoreFigures figures_;
};

}  // namespace candor::prefix_store
