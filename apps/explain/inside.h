#pragma once
// A look inside the forward pass of a prompt and its answer, on the reference backend: where attention of the prompt's
// last token looks, and which token would follow if the model ended behind each of its layers (the final norm and the
// head over the stream as it is there: nostalgebraist, "Interpreting GPT: the logit lens", 2020).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/explain/stages.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "candor/options.h"

namespace candor::apps {

inline constexpr size_t kMostInsideTokens = 2048;  // the reference is slow

struct HeadLook {
  std::vector<std::pair<int32_t, double>> best{};  // positions and their shares, the largest first
  std::optional<double> sink{};                    // the share of no token
};

// A layer without heads is recurrent: it keeps a state, and looks at no position.
struct LayerLook {
  std::vector<HeadLook> heads{};
  std::vector<std::pair<TokenId, double>> next{};  // for each token of the answer: the likeliest, its probability
};

struct Inside {
  bool has_attention = false;
  bool has_next = false;
  std::vector<TokenId> tokens{};  // prompt, then answer
  size_t n_prompt = 0;
  std::vector<LayerLook> layers{};
};

struct InsideWish {
  bool attention = false;
  bool layers = false;
  bool is_any() const { return attention || layers; }
};

// Loads the model anew, in f32. REQUIRES: prompt and answer are not empty.
Result<Inside> look_inside(const EngineOptions& options, std::span<const TokenId> prompt,
                           std::span<const TokenId> answer, InsideWish wish);

std::string inside_text(const Inside& inside, const TokenName& name, const Style& style);
nlohmann::ordered_json inside_json(const Inside& inside, const TokenName& piece);

}  // namespace candor::apps
