#pragma once
// How many guesses are worth checking: the number with the most tokens for the time, from the share of guesses that
// came true lately and from what a step of so many rows costs. 0 where guessing does not pay; then a single guess is
// tried now and again, ever more rarely, so that what it costs stays below one part in a hundred. One for each
// sequence. Nothing here changes an answer: it only decides how many tokens one step gives.

#include <cstdint>
#include <functional>

namespace candor::draft {

inline constexpr int32_t kMaxGuesses = 15;

// What a step costs with so many rows for this sequence, relative to any unit; grows with n_rows.
using RowCost = std::function<double(int32_t n_rows)>;

class DraftLength {
 public:
  // At most `most`. Pure: record() alone changes the state.
  int32_t choose(int32_t most, const RowCost& cost) const;
  // n_guessed were checked (0: none were), the first n_right of them came true.
  void record(int32_t n_guessed, int32_t n_right);

  // Guesses were checked before.
  bool has_begun() const { return has_begun_; }
  double acceptance() const { return n_right_ / n_tried_; }

 private:
  // Decaying counts; the start is an assumption that two or three steps correct.
  double n_right_ = 1.4;
  double n_tried_ = 2.0;
  bool has_begun_ = false;
  int32_t n_idle_ = 0;     // steps since the last guess
  int32_t patience_ = 32;  // steps until the next trial
};

}  // namespace candor::draft
