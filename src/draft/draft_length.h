#pragma once
// How many draft tokens of speculative decoding are worth verifying in a step: the number with the most tokens for the
// time, from the share of drafts that were accepted lately and from what drafts cost. 0 where drafting does not pay;
// then a few single drafts are tried now and again, ever more rarely.
//
// Every draft is paid for beforehand, out of what earlier ones have gained, of a hundredth of the time that plain
// decoding would have taken so far, and of the time of one step: by the costs given, no text takes more than 1 % and
// one step longer than without drafts, at no moment, whichever of them are accepted. What texts have gained beyond
// their own needs they may lend to later ones (lend()): then that holds for all of them together. One for each
// sequence. Nothing here changes an answer: it only decides how many tokens one step gives.

#include <array>
#include <cstdint>

namespace candor::draft {

inline constexpr int32_t kMaxDrafts = 15;
inline constexpr double kUsualShare = 0.7;  // of drafts that are accepted, where nothing is known

// In any one unit of time.
struct DraftCosts {
  double plain = 0.0;                             // a step without drafts
  std::array<double, kMaxDrafts + 1> extra = {};  // what n drafts add to it, making them included; does not fall
};

class DraftLength {
 public:
  // Before the first step: the share of drafts that is accepted of other texts.
  void expect(double share) { n_accepted_ = share * n_tried_; }
  // What it may spend besides; and what it has gained beyond `needed`, which it gives away.
  void lend(double time) { budget_ += time; }
  double give(double needed);
  // At most `most`.
  int32_t choose(int32_t most, const DraftCosts& costs) const;
  // Before every step: what it takes without drafts, and what its drafts add.
  void pay(double plain, double extra);
  // After it: n_drafted were verified (0: none were), the first n_accepted of them accepted.
  void record(int32_t n_drafted, int32_t n_accepted);

  double acceptance() const { return n_accepted_ / n_tried_; }

 private:
  // Decaying counts; the start is an assumption that two or three steps correct.
  double n_accepted_ = 2.0 * kUsualShare;
  double n_tried_ = 2.0;
  double budget_ = 0.0;    // what drafts may cost from here on
  double plain_ = 0.0;     // of the step in the making
  int32_t n_idle_ = 0;     // steps since the last draft
  int32_t patience_ = 32;  // steps until the next trial
  int32_t n_trial_ = 0;    // drafts that are left of one
};

}  // namespace candor::draft
