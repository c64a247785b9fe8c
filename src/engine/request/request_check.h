#pragma once
// Checks a caller's request, every field against its range and the prompt against the context length, and makes of it
// the ActiveRequest that the engine thread works on; make_seed() in request_check.cpp draws the default seed. Runs on
// the caller's thread and touches nothing that the engine thread changes.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "candor/info.h"
#include "candor/request.h"
#include "engine/images/image_reader.h"
#include "engine/images/image_store.h"
#include "engine/request/active_request.h"
#include "engine/request/adapter_registry.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// A prompt's tokens; of two texts where the second one begins, and whether its tokens are of another type.
struct ReadPrompt {
  std::vector<TokenId> tokens{};
  int32_t second_begin = 0;
  bool has_types = false;
  bool is_whole = false;  // of a template: it cannot be cut
  std::vector<PlacedTile> images{};
};

// What a check needs to know of the engine; borrowed, constant.
struct RequestLimits {
  const text::Tokenizer* tokenizer = nullptr;
  int32_t n_ctx = 0;
  int32_t n_vocab = 0;
  int32_t dim = 0;
  int32_t max_choices = kMaxChoices;
  int32_t max_running = 1;  // sequences at once
  const ModelInfo* info = nullptr;
  const ReadingInfo* reading = nullptr;
  Pooling label_pooling = Pooling::kFirst;
  std::optional<TokenId> label_pad{};  // ends of texts that labels are not made of
  kv::PrefixKey key{};
  const AdapterRegistry* adapters = nullptr;
  const ImageReader* images = nullptr;  // nullptr: the model takes none
};

// Ids outside the vocabulary are refused.
Result<void> check_tokens(std::span<const TokenId> tokens, const text::Tokenizer& tokenizer);

// Drops the tokens that max_prompt_tokens leaves no room for; their number.
Result<std::int64_t> truncate_prompt(const Request& request, const text::Tokenizer& tokenizer, ReadPrompt& prompt);

// `prompt`: already checked. The result still lacks its callback and its constraints.
Result<std::unique_ptr<ActiveRequest>> prepare_request(const Request& request, ReadPrompt prompt,
                                                       const RequestLimits& limits, int64_t now_ns);

}  // namespace candor::engine
