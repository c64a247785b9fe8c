#pragma once
// Which sides hold the current numbers of an arena's slot. Operations read and write a slot from its beginning, as many
// numbers as their rows have; so it falls into pieces, each current on one side or on both. What nothing has written is
// current on both.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "backend/placement.h"

namespace candor::backend::mixed {

class SlotSides {
 public:
  // Of the first n numbers.
  bool is_current(int64_t n, Side side) const {
    bool is_current = true;
    for_stale(n, side, [&](int64_t, int64_t) { is_current = false; });
    return is_current;
  }
  void note_written(int64_t n, Side side) {
    set(n, [side](Mask) { return mask_of(side); });
  }
  void note_copied(int64_t n, Side side) {
    set(n, [side](Mask sides) { return static_cast<Mask>(sides | mask_of(side)); });
  }
  // fn(begin, end) for each piece of the first n numbers that is not current there.
  template <class Fn>
  void for_stale(int64_t n, Side side, Fn&& fn) const {
    int64_t begin = 0;
    for (const Piece& piece : pieces_) {
      if (begin >= n) return;
      if ((piece.sides & mask_of(side)) == 0) fn(begin, std::min(piece.end, n));
      begin = piece.end;
    }
  }

 private:
  using Mask = uint8_t;
  struct Piece {
    int64_t end = 0;
    Mask sides = 0;
  };
  static constexpr Mask mask_of(Side side) { return static_cast<Mask>(1U << static_cast<unsigned>(side)); }
  static constexpr Mask kBoth = 0b11;

  // change(sides) of the first n numbers.
  template <class Change>
  void set(int64_t n, Change change);

  std::vector<Piece> pieces_;  // ascending; both sides have what lies behind the last
};

template <class Change>
void SlotSides::set(int64_t n, Change change) {
  if (n <= 0) return;
  const auto behind = std::ranges::upper_bound(pieces_, n, {}, &Piece::end);
  const bool is_split = behind == pieces_.begin() || std::prev(behind)->end < n;
  if (is_split) pieces_.insert(behind, {n, behind == pieces_.end() ? kBoth : behind->sides});
  for (Piece& piece : pieces_) {
    if (piece.end <= n) piece.sides = change(piece.sides);
  }
  const auto has_same = [](const Piece& piece, const Piece& next) { return piece.sides == next.sides; };
  const auto kept = std::unique(pieces_.rbegin(), pieces_.rend(), has_same);  // the last of those that are alike
  pieces_.erase(pieces_.begin(), kept.base());
  while (!pieces_.empty() && pieces_.back().sides == kBoth) pieces_.pop_back();
}

}  // namespace candor::backend::mixed
