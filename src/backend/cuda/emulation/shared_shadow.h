#pragma once
// Who last wrote and read each word of a block's shared memory, to find accesses of two threads with nothing that
// orders them. Time is counted in epochs: of the block, which end at each barrier, and of each warp, which end when its
// lanes meet. Two accesses are ordered if an epoch of the block lies between, or one of the warp that both belong to.
//
// Words have 4 bytes. In an epoch in which parts of a word are accessed, its bytes are followed one by one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace candor::backend::cuda::emulation {

class SharedShadow {
 public:
  // The thread of an access, and its times.
  struct Accessor {
    uint32_t thread;
    uint32_t epoch;  // 0 < epoch < kArriving
    uint32_t warp_epoch;
  };
  enum class Conflict : uint8_t { kNone, kWrite, kRead, kArriving };

  static constexpr uint32_t kArriving = UINT32_MAX;  // the epoch of a write whose bytes have not arrived

  void resize(size_t n_bytes);

  // False: there is a conflict. REQUIRES: the bytes are within the size.
  bool read(size_t offset, size_t n_bytes, const Accessor& by) {
    if (((offset | n_bytes) & 3) != 0) return note<false>(offset, n_bytes, by);
    for (size_t word = offset / 4; word < (offset + n_bytes) / 4; ++word) {
      Cell& cell = cells_[word];
      const bool is_new = cell.write_epoch < by.epoch && cell.split_epoch != by.epoch;
      if (!(is_new ? read_cell(cell, by) : note_word<false>(word, 0, 4, by))) return false;
    }
    return true;
  }
  bool write(size_t offset, size_t n_bytes, const Accessor& by) { return note<true>(offset, n_bytes, by); }

  // A write that is made later, by arrive(); until then the bytes may not be accessed. Whole words.
  bool begin_arriving(size_t offset, size_t n_bytes, const Accessor& by);
  void arrive(size_t offset, size_t n_bytes, const Accessor& by);

  // Of the access that returned false.
  Conflict conflict() const { return conflict_; }
  uint32_t other_thread() const { return other_thread_; }

 private:
  static constexpr uint16_t kNobody = UINT16_MAX;

  struct Cell {
    uint32_t write_epoch = 0;
    uint32_t write_warp_epoch = 0;
    uint32_t read_epoch = 0;
    uint32_t read_warp_epoch = 0;
    uint32_t read_lanes = 0;  // of the reader's warp, in read_warp_epoch
    uint32_t split_epoch = 0;
    uint16_t writer = kNobody;
    uint16_t reader = kNobody;        // the first of read_epoch
    uint16_t other_reader = kNobody;  // the first of another warp
  };

  static bool is_ordered(const Cell& cell, const Accessor& by) {
    if (cell.writer == by.thread) return true;
    return (cell.writer ^ by.thread) < 32 && cell.write_warp_epoch < by.warp_epoch;
  }
  bool read_cell(Cell& cell, const Accessor& by) {
    if (cell.write_epoch >= by.epoch && !is_ordered(cell, by)) return refuse(Conflict::kWrite, cell.writer);
    const uint32_t bit = 1u << (by.thread & 31);
    if (cell.read_epoch != by.epoch) {
      cell.read_epoch = by.epoch;
      cell.read_warp_epoch = by.warp_epoch;
      cell.read_lanes = bit;
      cell.reader = static_cast<uint16_t>(by.thread);
      cell.other_reader = kNobody;
    } else if ((cell.reader ^ by.thread) >= 32) {
      if (cell.other_reader == kNobody) cell.other_reader = static_cast<uint16_t>(by.thread);
    } else if (cell.read_warp_epoch != by.warp_epoch) {
      cell.read_warp_epoch = by.warp_epoch;
      cell.read_lanes = bit;
    } else {
      cell.read_lanes |= bit;
    }
    return true;
  }
  bool write_cell(Cell& cell, const Accessor& by);
  template <bool kIsWrite>
  bool note(size_t offset, size_t n_bytes, const Accessor& by);
  template <bool kIsWrite>
  bool note_word(size_t word, size_t first, size_t n_bytes, const Accessor& by);
  bool refuse(Conflict conflict, uint32_t thread);

  std::vector<Cell> cells_;
  std::vector<std::array<Cell, 4>> bytes_;
  Conflict conflict_ = Conflict::kNone;
  uint32_t other_thread_ = 0;
};

}  // namespace candor::backend::cuda::emulation
