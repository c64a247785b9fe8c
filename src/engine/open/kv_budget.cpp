#include "engine/open/kv_budget.h"

#include <algorithm>
#include <limits>
#include <string>

#include "backend/op_specs.h"
#include "base/checked.h"

namespace candor::engine {
namespace {

constexpr int64_t kDefaultBudgetBytes = int64_t{1} << 30;

int64_t blocks_for(int64_t n_tokens) {
  return ceil_div<int64_t>(n_tokens, backend::kBlockTokens);
}

// As asked for; 0 where nothing was.
int64_t blocks_asked(const EngineOptions& options, int64_t block_bytes) {
  if (options.kv_blocks > 0) return options.kv_blocks;
  const uint64_t blocks = options.kv_bytes / static_cast<uint64_t>(block_bytes);
  return static_cast<int64_t>(std::min<uint64_t>(blocks, std::numeric_limits<int32_t>::max()));
}

// Every running request at its full length, within the default budget, and one full context where n_ctx was asked for.
int64_t default_blocks(const EngineOptions& options, int64_t n_ctx, int64_t block_bytes) {
  const int64_t wanted = blocks_for(n_ctx) * options.max_running;
  const int64_t affordable = std::max<int64_t>(1, kDefaultBudgetBytes / block_bytes);
  const int64_t least = options.n_ctx > 0 ? blocks_for(n_ctx) : 1;
  return std::max(least, std::min(wanted, affordable));
}

}  // namespace

Result<KvBudget> plan_kv(const EngineOptions& options, int32_t model_positions, int64_t block_bytes) {
  CANDOR_CHECK(model_positions > 0 && block_bytes > 0);
  if (options.n_ctx > model_positions) {
    return fail(ErrorKind::kInvalidInput, "n_ctx is " + std::to_string(options.n_ctx) +
                                              ", but the model was made for " + std::to_string(model_positions) +
                                              " tokens; ask for at most that");
  }
  int64_t n_ctx = options.n_ctx > 0 ? options.n_ctx : model_positions;
  const bool is_budgeted = options.kv_blocks > 0 || options.kv_bytes > 0;
  const int64_t n_blocks =
      is_budgeted ? blocks_asked(options, block_bytes) : default_blocks(options, n_ctx, block_bytes);
  if (n_blocks > std::numeric_limits<int32_t>::max() / backend::kBlockTokens) {
    return fail(ErrorKind::kInvalidInput,
                "a K/V cache of " + std::to_string(n_blocks) + " blocks, expected at most " +
                    std::to_string(std::numeric_limits<int32_t>::max() / backend::kBlockTokens));
  }
  const int64_t held = n_blocks * backend::kBlockTokens;
  if (n_blocks < 1 || (options.n_ctx > 0 && n_ctx > held)) {
    return fail(ErrorKind::kOutOfMemory,
                "the K/V budget holds " + std::to_string(held) + " tokens, one context needs " + std::to_string(n_ctx) +
                    " (" + std::to_string(blocks_for(n_ctx) * block_bytes) + " bytes); raise it or lower n_ctx");
  }
  n_ctx = std::min(n_ctx, held);
  return KvBudget{static_cast<int32_t>(n_ctx), static_cast<int32_t>(n_blocks)};
}

}  // namespace candor::engine
