#include "apps/bench/generate.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <span>

#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/philox.h"

namespace candor::apps {
namespace {

constexpr int32_t kStepRows = 512;
constexpr uint64_t kSeed = 7;

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// By the largest of each part, so that one part alone is searched for it. Rows of NaN have no largest: 0.
TokenId likeliest(const kernels::KernelTable& table, std::span<const float> row) {
  constexpr size_t kPart = 4096;
  float largest = -std::numeric_limits<float>::infinity();
  size_t first_of_part = 0;
  for (size_t first = 0; first < row.size(); first += kPart) {
    const float here = table.max(row.data() + first, static_cast<int64_t>(std::min(kPart, row.size() - first)));
    if (here > largest) {
      largest = here;
      first_of_part = first;
    }
  }
  const auto at = std::find(row.begin() + static_cast<std::ptrdiff_t>(first_of_part), row.end(), largest);
  return at == row.end() ? 0 : static_cast<TokenId>(at - row.begin());
}

}  // namespace

Result<std::unique_ptr<GenerateBench>> GenerateBench::open(EngineOptions options,
                                                           const std::vector<GenerateCase>& cases) {
  auto bench = std::make_unique<GenerateBench>();
  int32_t n_positions = 1, n_batch = 1;
  for (const GenerateCase& c : cases) {
    n_positions = std::max(n_positions, c.n_prompt + c.n_new);
    n_batch = std::max(n_batch, c.n_batch);
  }
  bench->max_blocks_ = ceil_div(n_positions, backend::kBlockTokens);
  options.n_ctx = n_positions;
  options.max_running = n_batch;
  options.max_rows = std::max(kStepRows, n_batch);
  options.kv_blocks = bench->max_blocks_ * n_batch;
  CANDOR_ASSIGN(bench->kernels_, kernels::select_table_from_environment());
  CANDOR_ASSIGN(bench->loaded_, load_bare_model(options));
  CANDOR_TRY(bench->loaded_.model->reserve(options.max_rows, n_batch, n_positions));
  const KvType kv_type = model::usual_kv(bench->model().spec(), bench->backend_info().default_kv);
  const backend::KvLayout layout = bench->model().kv_layout(kv_type);
  CANDOR_ASSIGN(bench->kv_, bench->loaded_.backend->make_kv(layout, {options.kv_blocks, 2 * n_batch}));
  return bench;
}

// One step of the given rows of each sequence; the likeliest next token is appended where a sequence's rows reach its
// end.
void GenerateBench::step(std::vector<Sequence*>& sequences, const std::vector<int32_t>& n_rows) {
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions, out_rows;
  std::vector<backend::SeqSlice> slices;
  std::vector<backend::StateSave> saves;
  std::vector<BlockId> table;
  std::vector<Sequence*> ending;
  for (size_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = *sequences[i];
    // Two slots a sequence, in turn.
    slices.push_back({static_cast<int32_t>(tokens.size()), n_rows[i], sequence.n_past,
                      sequence.n_past == 0 ? kNoState : sequence.state});
    sequence.state = 2 * sequence.index + (sequence.state == 2 * sequence.index ? 1 : 0);
    for (int32_t row = 0; row < n_rows[i]; ++row) {
      const int32_t position = sequence.n_past + row;
      positions.push_back(position);
      tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    }
    saves.push_back({static_cast<int32_t>(tokens.size()) - 1, sequence.state});
    sequence.n_past += n_rows[i];
    if (static_cast<size_t>(sequence.n_past) == sequence.tokens.size()) {
      out_rows.push_back(static_cast<int32_t>(tokens.size()) - 1);
      ending.push_back(&sequence);
    }
  }
  for (const Sequence* sequence : sequences) {
    for (int32_t block = 0; block < max_blocks_; ++block) {
      table.push_back((block < shared_blocks_ ? 0 : sequence->index * max_blocks_) + block);
    }
  }
  const backend::StepBatch batch{tokens, positions, slices, table, max_blocks_, out_rows, saves};
  const backend::LogitsView logits = loaded_.backend->read_logits(loaded_.model->launch(batch, *kv_));
  for (size_t i = 0; i < ending.size(); ++i) {
    ending[i]->tokens.push_back(likeliest(*kernels_, logits.row(static_cast<int32_t>(i))));
  }
}

void GenerateBench::prefill(std::vector<Sequence>& sequences) {
  for (Sequence& sequence : sequences) {
    const int32_t n = static_cast<int32_t>(sequence.tokens.size());
    while (sequence.n_past < n) {
      std::vector<Sequence*> one = {&sequence};
      step(one, {std::min(kStepRows, n - sequence.n_past)});
    }
  }
}

void GenerateBench::decode_step(std::vector<Sequence>& sequences, bool use_kv_cache) {
  if (!use_kv_cache) {
    for (Sequence& sequence : sequences)
      sequence.n_past = sequence.index == 0 ? 0 : shared_blocks_ * backend::kBlockTokens;
    return prefill(sequences);
  }
  std::vector<Sequence*> all;
  all.reserve(sequences.size());
  for (Sequence& sequence : sequences) all.push_back(&sequence);
  step(all, std::vector<int32_t>(all.size(), 1));
}

Result<GenerateTimes> GenerateBench::run(const GenerateCase& c) {
  if (c.n_shared > 0 && kv_->n_states() > 0) {
    return fail(ErrorKind::kUnsupported,
                "bench generate --shared: layers of this model keep a state that follows from all "
                "tokens, and the bench keeps none to begin from; leave --shared out");
  }
  shared_blocks_ = c.n_shared / backend::kBlockTokens;
  std::vector<Sequence> sequences(static_cast<size_t>(c.n_batch));
  const uint32_t vocab = static_cast<uint32_t>(model().spec().vocab);
  for (size_t s = 0; s < sequences.size(); ++s) {
    sequences[s].index = static_cast<int32_t>(s);
    if (s > 0) sequences[s].n_past = c.n_shared;
    for (int32_t i = 0; i < c.n_prompt; ++i) {
      const auto text = static_cast<uint32_t>(i < c.n_shared ? 0 : s);
      sequences[s].tokens.push_back(
          static_cast<TokenId>(random_words(kSeed, text, static_cast<uint64_t>(i))[0] % vocab));
    }
  }
  GenerateTimes times;
  auto began = std::chrono::steady_clock::now();
  prefill(sequences);
  times.prefill_s = seconds_since(began);
  const backend::RankTraffic before = loaded_.backend->rank_traffic();
  began = std::chrono::steady_clock::now();
  for (int32_t i = 0; i < c.n_new; ++i) decode_step(sequences, c.use_kv_cache);
  times.decode_s = seconds_since(began);
  const backend::RankTraffic after = loaded_.backend->rank_traffic();
  times.decode_traffic = {after.n_exchanges - before.n_exchanges, after.n_bytes - before.n_bytes};
  CANDOR_TRY(loaded_.backend->health());
  return times;
}

}  // namespace candor::apps
