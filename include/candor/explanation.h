#pragma once
// How a token came about, for those who want to see it (SamplingParams::explain): the stages of the sampler, the ways
// that a beam search weighed, and where its row looked in the prompt's images. Plain data; any thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "candor/ids.h"

namespace candor {

// What one stage of the sampler left, cut and changed. A logit behind a temperature is the quotient z / T.
struct StageView {
  struct Candidate {
    TokenId token = -1;
    float logit = 0.0f;
    double probability = 0.0;  // among those that are left
  };
  std::string name{};             // "logits" first; "mask" of a constraint and "bans"; then the stages that were on
  std::int64_t n_left = 0;        // candidates
  std::vector<Candidate> best{};  // at most 8, in order
  // The likeliest that this one took out, as they were: at most 8, of the 256 best before it. And of what the stage
  // before showed as best: what it lowered behind the others, as it is.
  std::vector<Candidate> cut{};
  std::vector<Candidate> lowered{};
  double cut_probability = 0.0;  // of all that it took out together; 0 for stages that change logits
  // One token whose logit penalties, DRY or a bias changed.
  struct Change {
    TokenId token = -1;
    float before = 0.0f;
    float after = 0.0f;
    std::int64_t n_in_text = 0;    // how often it stands in prompt and output,
    std::int64_t n_in_output = 0;  // and in the output alone
  };
  std::vector<Change> changed{};  // at most 8, the likeliest before first
  std::int64_t n_changed = 0;     // all of them
};

enum class BeamFate : std::uint8_t { kKept, kComplete, kDropped };

const char* to_string(BeamFate fate);  // "kept", "complete", "dropped"

// One way to go on that a beam search weighed in a step, over all of its texts.
struct BeamOption {
  std::int32_t parent = 0;  // the text that it goes on from: its place among those that the step before kept
  TokenId token = -1;
  double score = 0.0;  // of the text with it: the sum of its tokens' logprobs, before its length counts
  BeamFate fate = BeamFate::kDropped;
};

// How much one row looked at an image of the prompt: shares of its attention, the mean of all heads and layers that
// attend. A tile is a grid of patches over a part of the image, in its pixels.
struct ImageAttention {
  struct Tile {
    std::int32_t rows = 0;
    std::int32_t cols = 0;
    double left = 0.0, top = 0.0, width = 0.0, height = 0.0;
    bool is_whole = false;        // of several, the one that shows the whole image
    std::vector<float> shares{};  // [rows * cols]
  };
  std::int32_t image_width = 0;
  std::int32_t image_height = 0;
  double share = 0.0;  // of all patches
  std::vector<Tile> tiles{};
};

// How one token came about, with SamplingParams::explain.
struct TokenExplanation {
  std::vector<StageView> stages{};  // of a beam search: of the text that the token follows
  bool was_drawn = false;           // false: the best was taken
  double draw = 0.0;                // in [0, 1): the share of probability, in order, at which the token was found
  TokenId draft = -1;               // what was drafted for this place, -1 where nothing
  std::vector<BeamOption> beam_options{};    // of a beam search, best first; of those dropped, the 8 best
  std::optional<std::size_t> beam_option{};  // which of them the token is
  std::vector<ImageAttention> images{};      // with SamplingParams::attention: one for each image of the prompt
};

}  // namespace candor
