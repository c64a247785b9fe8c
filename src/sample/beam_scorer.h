#pragma once
// Beam search as bookkeeping: texts that grow side by side, a token at a time, the best `width` of them; complete ones
// are kept aside. Scores are sums of logarithms of probabilities. Ties go to the text that ranked higher, then to the
// order of its continuations, so that the search is a pure function of the rows. With width 1 it is greedy decoding.
//
//   set_row() for every live text, in any order; select(); perhaps end_survivor(); again, until is_over(); best().
//
// Knows no sequence, no text and no reason: its owner maps live text i to what carries it. Engine thread only.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "candor/event.h"
#include "candor/request.h"

namespace candor::sample {

struct BeamParams {
  BeamSearch asked{};
  int64_t max_length = 0;  // tokens; 0 = no limit
  int32_t n_best = 1;      // answers wanted, at most asked.width
};

// One way to go on from a live text.
struct Continuation {
  TokenId token = kNoToken;
  float score = 0.0f;    // what it adds
  float logprob = 0.0f;  // as reported
  bool ends = false;     // the text is complete with it
};

enum class BeamEnd : uint8_t { kByToken, kByOwner, kCut };  // cut: the longest length was reached

struct BeamNode {
  int32_t parent = -1;  // index of the node before; -1: the first token
  int32_t live = 0;     // which live text of its step it went on from
  TokenId token = kNoToken;
  float logprob = 0.0f;
  std::vector<TokenLogprob> top{};  // of its row
};

struct BeamAnswer {
  double score = 0.0;
  int32_t node = -1;  // its last
  BeamEnd end = BeamEnd::kCut;
};

// Live text i of the next step goes on from live text `parent` of this one.
struct Survivor {
  int32_t parent = 0;
  TokenId token = kNoToken;
  size_t candidate = 0;  // which of candidates() it was
};

// A continuation among those of all live texts.
struct BeamCandidate {
  double score = 0.0;  // of the whole text
  int32_t live = 0;
  size_t next = 0;  // which of the text's continuations
  TokenId token = kNoToken;
  BeamFate fate = BeamFate::kDropped;
};

class BeamScorer {
 public:
  explicit BeamScorer(const BeamParams& params);

  int32_t n_live() const { return static_cast<int32_t>(live_.size()); }
  int64_t length() const { return length_; }  // tokens of every live text
  bool has_row(int32_t live) const { return live_[static_cast<size_t>(live)].has_row; }
  bool has_all_rows() const;
  // The best continuations, in order: until width of them do not end, or there are no more; none: a dead end.
  void set_row(int32_t live, std::vector<Continuation> best, std::vector<TokenLogprob> top);
  // REQUIRES: has_all_rows(). What it returns are the live texts from now on, best first.
  std::span<const Survivor> select();
  // Text `live` is complete with its last token. Directly after select(); the others keep their numbers until
  // settle().
  void end_survivor(int32_t live);
  // As end_survivor(), but the text is no answer.
  void drop_survivor(int32_t live) { end(live, BeamFate::kDropped); }
  // What select() chose from, best first, and what became of it. Until the next select().
  std::span<const BeamCandidate> candidates() const { return ranked_; }
  // Forgets the ended ones, and cuts all where the longest length is reached.
  void settle();
  bool is_over() const;

  // The n_best answers, best first; fewer where there are not as many.
  std::vector<BeamAnswer> best() const;
  // From the first token to `node`.
  std::vector<const BeamNode*> path(int32_t node) const;

 private:
  struct Live {
    double score = 0.0;
    int32_t node = -1;
    bool has_row = false;
    bool has_ended = false;
    std::vector<Continuation> next{};
    std::vector<TokenLogprob> top{};
  };

  void rank();
  Live grow(const BeamCandidate& candidate);
  void end(int32_t live, BeamFate fate);
  double normalised(double score, int64_t length) const;
  void complete(const Live& text, BeamEnd end);
  bool can_improve(const Live& text) const;

  const BeamParams params_;
  std::vector<Live> live_;
  std::vector<BeamNode> nodes_;
  std::vector<BeamAnswer> answers_;  // best first
  std::vector<BeamCandidate> ranked_;
  std::vector<Survivor> survivors_;
  int64_t length_ = 0;
};

}  // namespace candor::sample
