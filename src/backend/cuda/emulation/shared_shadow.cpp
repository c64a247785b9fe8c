#include "backend/cuda/emulation/shared_shadow.h"

#include <algorithm>
#include <bit>

namespace candor::backend::cuda::emulation {

void SharedShadow::resize(size_t n_bytes) {
  const size_t n_words = (n_bytes + 3) / 4;
  if (n_words <= cells_.size()) return;
  cells_.resize(n_words);
  bytes_.resize(n_words);
}

bool SharedShadow::refuse(Conflict conflict, uint32_t thread) {
  conflict_ = conflict;
  other_thread_ = thread;
  return false;
}

bool SharedShadow::write_cell(Cell& cell, const Accessor& by) {
  if (cell.write_epoch >= by.epoch && !is_ordered(cell, by)) return refuse(Conflict::kWrite, cell.writer);
  if (cell.read_epoch == by.epoch) {
    const bool is_same_warp = (cell.reader ^ by.thread) < 32;
    if (!is_same_warp) return refuse(Conflict::kRead, cell.reader);
    if (cell.other_reader != kNobody) return refuse(Conflict::kRead, cell.other_reader);
    const uint32_t others = cell.read_lanes & ~(1u << (by.thread & 31));
    if (cell.read_warp_epoch == by.warp_epoch && others != 0) {
      return refuse(Conflict::kRead, (by.thread & ~31u) + static_cast<uint32_t>(std::countr_zero(others)));
    }
  }
  cell.write_epoch = by.epoch;
  cell.write_warp_epoch = by.warp_epoch;
  cell.writer = static_cast<uint16_t>(by.thread);
  return true;
}

template <bool kIsWrite>
bool SharedShadow::note_word(size_t word, size_t first, size_t n_bytes, const Accessor& by) {
  Cell& cell = cells_[word];
  if (cell.write_epoch == kArriving) return refuse(Conflict::kArriving, cell.writer);
  if (n_bytes == 4 && cell.split_epoch != by.epoch) return kIsWrite ? write_cell(cell, by) : read_cell(cell, by);
  if (cell.split_epoch != by.epoch) {
    bytes_[word].fill(cell);
    cell.split_epoch = by.epoch;
  }
  for (size_t i = first; i < first + n_bytes; ++i) {
    Cell& byte = bytes_[word][i];
    if (!(kIsWrite ? write_cell(byte, by) : read_cell(byte, by))) return false;
  }
  return true;
}

template <bool kIsWrite>
bool SharedShadow::note(size_t offset, size_t n_bytes, const Accessor& by) {
  const size_t end = offset + n_bytes;
  while (offset < end) {
    const size_t first = offset % 4;
    const size_t n = std::min(4 - first, end - offset);
    if (!note_word<kIsWrite>(offset / 4, first, n, by)) return false;
    offset += n;
  }
  return true;
}

template bool SharedShadow::note<false>(size_t, size_t, const Accessor&);
template bool SharedShadow::note<true>(size_t, size_t, const Accessor&);
template bool SharedShadow::note_word<false>(size_t, size_t, size_t, const Accessor&);

bool SharedShadow::begin_arriving(size_t offset, size_t n_bytes, const Accessor& by) {
  if (!note<true>(offset, n_bytes, by)) return false;
  for (size_t word = offset / 4; word < (offset + n_bytes) / 4; ++word) {
    cells_[word].write_epoch = kArriving;
    cells_[word].writer = static_cast<uint16_t>(by.thread);
  }
  return true;
}

void SharedShadow::arrive(size_t offset, size_t n_bytes, const Accessor& by) {
  for (size_t word = offset / 4; word < (offset + n_bytes) / 4; ++word) {
    Cell& cell = cells_[word];
    cell.write_epoch = by.epoch;
    cell.write_warp_epoch = by.warp_epoch;
    cell.writer = static_cast<uint16_t>(by.thread);
    cell.read_epoch = 0;
    if (cell.split_epoch == by.epoch) bytes_[word].fill(cell);
  }
}

}  // namespace candor::backend::cuda::emulation
