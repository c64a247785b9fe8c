#include "apps/explain/inside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/terminal/terminal.h"
#include "backend/all/make_backend.h"
#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "backend/wrap/attention_probe.h"
#include "base/checked.h"
#include "base/ids.h"
#include "candor/info.h"
#include "candor/kv_type.h"
#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"
#include "formats/model_file.h"
#include "model/model.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kPositionsShown = 3;

// In the order of their lifetimes.
struct ProbedModel {
  std::unique_ptr<formats::ModelFile> file;
  std::unique_ptr<backend::AttentionProbe> backend;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<backend::KvStore> kv;
};

Result<ProbedModel> load(EngineOptions options, size_t n_tokens, size_t n_out) {
  const EndsOnInterrupt at_once;
  options.backend = "reference";
  options.kv_type = KvType::kF32;
  options.fast_weights = false;
  options.draft_path.clear();
  options.kv_bytes = 0;
  options.speculation = Speculation::kOff;
  options.max_running = 1;
  options.max_rows = checked_cast<int32_t>(n_tokens);
  options.n_ctx = checked_cast<int64_t>(n_tokens);
  ProbedModel loaded;
  CANDOR_ASSIGN(loaded.file, engine::open_model_file(options));
  CANDOR_ASSIGN(auto reference, backend::make_backend("reference", {}));
  loaded.backend = std::make_unique<backend::AttentionProbe>(std::move(reference));
  CANDOR_ASSIGN(const MemoryPlan plan, engine::plan_memory(options, *loaded.file, *loaded.backend, nullptr));
  CANDOR_TRY(engine::check_fits(plan));
  ProgressBar bar("loading in f32");
  const auto progress = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); };
  CANDOR_ASSIGN(loaded.model, model::Model::load(*loaded.file, *loaded.backend, {.progress = progress}));
  loaded.file->drop_copies();
  if (options.max_rows > loaded.model->spec().max_positions)
    return fail(ErrorKind::kContextLength,
                fmt::format("--attention and --layers need the whole text in the context: {} tokens, the model has {}",
                            options.max_rows, loaded.model->spec().max_positions));
  CANDOR_TRY(loaded.model->reserve(options.max_rows, checked_cast<int32_t>(n_out), options.max_rows));
  const int32_t n_blocks = ceil_div(options.max_rows, backend::kBlockTokens);
  CANDOR_ASSIGN(loaded.kv, loaded.backend->make_kv(loaded.model->kv_layout(KvType::kF32), {n_blocks, 2}));
  return loaded;
}

HeadLook look_of(const std::vector<double>& shares) {
  std::vector<int32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t n = std::min(kPositionsShown, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(n), [&](int32_t a, int32_t b) {
    const double of_a = shares[static_cast<size_t>(a)], of_b = shares[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  HeadLook head;
  for (size_t i = 0; i < n; ++i) head.best.emplace_back(order[i], shares[static_cast<size_t>(order[i])]);
  return head;
}

std::pair<TokenId, double> likeliest(std::span<const float> logits) {
  const auto best = std::ranges::max_element(logits);
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - static_cast<double>(*best));
  return {static_cast<TokenId>(best - logits.begin()), 1.0 / total};
}

// One step of all tokens, block by block.
class Pass {
 public:
  Pass(ProbedModel& loaded, Inside& inside, size_t n_out) : loaded_(loaded), inside_(inside) {
    const int32_t n = checked_cast<int32_t>(inside.tokens.size()) - 1;  // the last token of the answer is not read
    positions_.resize(static_cast<size_t>(n));
    std::iota(positions_.begin(), positions_.end(), 0);
    blocks_.resize(static_cast<size_t>(loaded.kv->n_blocks()));
    std::iota(blocks_.begin(), blocks_.end(), 0);
    slice_ = {0, n, 0, kNoState};
    save_ = {n - 1, 0};
    out_rows_ = std::span<const int32_t>(positions_).last(n_out);
    if (inside.has_attention) loaded.backend->probe().look_at(out_rows_.front());
  }

  void run() {
    const int32_t n_blocks = checked_cast<int32_t>(loaded_.model->spec().blocks.size());
    for (int32_t layer = 0; layer < n_blocks; ++layer) {
      const bool is_last = layer + 1 == n_blocks;  // the head comes along
      const auto ticket = loaded_.model->launch_blocks(layer, layer + 1, batch(), *loaded_.kv);
      backend::LogitsView logits = loaded_.backend->read_logits(ticket);
      LayerLook& look = inside_.layers.emplace_back();
      take_attention(look);
      if (!inside_.has_next) continue;
      if (!is_last)
        logits = loaded_.backend->read_logits(loaded_.model->launch_blocks(n_blocks, n_blocks, batch(), *loaded_.kv));
      for (int32_t i = 0; i < logits.n_rows; ++i) look.next.push_back(likeliest(logits.row(i)));
    }
  }

 private:
  backend::StepBatch batch() const {
    return {.tokens = std::span<const TokenId>(inside_.tokens).first(positions_.size()),
            .positions = positions_,
            .seqs = std::span(&slice_, 1),
            .block_table = blocks_,
            .max_blocks = checked_cast<int32_t>(blocks_.size()),
            .out_rows = out_rows_,
            .saves = std::span(&save_, 1)};
  }

  void take_attention(LayerLook& look) {
    const auto shares = loaded_.backend->probe().take();
    if (!shares) return;
    for (size_t head = 0; head < shares->heads.size(); ++head) {
      look.heads.push_back(look_of(shares->heads[head]));
      if (!shares->sinks.empty()) look.heads.back().sink = shares->sinks[head];
    }
  }

  ProbedModel& loaded_;
  Inside& inside_;
  std::vector<int32_t> positions_;
  std::vector<BlockId> blocks_;
  backend::SeqSlice slice_;
  backend::StateSave save_;
  std::span<const int32_t> out_rows_;
};

void attention_lines(const Inside& inside, const TokenName& name, const Style& style, std::string& out) {
  const size_t last = inside.n_prompt - 1;
  out += style.bold(fmt::format("attention of the prompt's last token, {}:{}, by the reference", last,
                                name(inside.tokens[last]))) +
         "\n";
  for (size_t layer = 0; layer < inside.layers.size(); ++layer) {
    const LayerLook& look = inside.layers[layer];
    if (look.heads.empty())
      out += fmt::format("  layer {}: {}\n", layer, style.dim("recurrent, looks at a state and at no position"));
    for (size_t head = 0; head < look.heads.size(); ++head) {
      out += fmt::format("  {:<9} head {:<3}", head == 0 ? fmt::format("layer {}", layer) : "", head);
      for (const auto& [position, share] : look.heads[head].best) {
        const std::string shown =
            fitted(fmt::format("{}:{}", position, name(inside.tokens[static_cast<size_t>(position)])), 12);
        out += fmt::format("  {} {:.3f}", padded(shown, 12, shown), share);
      }
      if (look.heads[head].sink) out += style.dim(fmt::format("  no token {:.3f}", *look.heads[head].sink));
      out += "\n";
    }
  }
}

void next_lines(const Inside& inside, const TokenName& name, const Style& style, std::string& out) {
  constexpr size_t kMostColumns = 4;
  const size_t n = std::min(kMostColumns, inside.layers.front().next.size());
  out += style.bold("the likeliest token if the model ended behind each layer, by the reference") + "\n";
  std::string head = fmt::format("  {:<9}", "");
  for (size_t i = 0; i < n; ++i) head += fmt::format("{:<17}", fmt::format("token {}", i + 1));
  out += style.dim(head.substr(0, head.find_last_not_of(' ') + 1)) + "\n";
  for (size_t layer = 0; layer < inside.layers.size(); ++layer) {
    out += fmt::format("  {:<9}", fmt::format("layer {}", layer));
    for (size_t i = 0; i < n; ++i) {
      const auto& [token, probability] = inside.layers[layer].next[i];
      const std::string shown = fitted(name(token), 9);
      const bool is_chosen = token == inside.tokens[inside.n_prompt + i];
      out += padded(is_chosen ? style.green(shown) : shown, 9, shown) + fmt::format(" {:.3f}  ", probability);
    }
    while (out.ends_with(' ')) out.pop_back();
    out += "\n";
  }
}

}  // namespace

Result<Inside> look_inside(const EngineOptions& options, std::span<const TokenId> prompt,
                           std::span<const TokenId> answer, InsideWish wish) {
  Inside inside{.has_attention = wish.attention, .has_next = wish.layers, .n_prompt = prompt.size()};
  inside.tokens.assign(prompt.begin(), prompt.end());
  inside.tokens.insert(inside.tokens.end(), answer.begin(), answer.end());
  if (inside.tokens.size() > kMostInsideTokens)
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--attention and --layers compute all {} tokens by the slow reference, at most {}: a "
                            "shorter prompt, or fewer tokens (-n)",
                            inside.tokens.size(), kMostInsideTokens));
  CANDOR_ASSIGN(ProbedModel loaded, load(options, inside.tokens.size(), answer.size()));
  Pass(loaded, inside, answer.size()).run();
  return inside;
}

std::string inside_text(const Inside& inside, const TokenName& name, const Style& style) {
  std::string out;
  if (inside.has_attention) attention_lines(inside, name, style, out);
  if (inside.has_next) next_lines(inside, name, style, out);
  return out;
}

Json inside_json(const Inside& inside, const TokenName& piece) {
  Json layers = Json::array();
  for (const LayerLook& look : inside.layers) {
    Json layer = Json::object();
    for (const HeadLook& head : look.heads) {
      Json best = Json::array();
      for (const auto& [position, share] : head.best) best.push_back({{"position", position}, {"share", share}});
      layer["heads"].push_back({{"best", std::move(best)}});
      if (head.sink) layer["heads"].back()["sink"] = *head.sink;
    }
    for (const auto& [token, probability] : look.next)
      layer["next"].push_back({{"token", token}, {"piece", piece(token)}, {"probability", probability}});
    layer["is_recurrent"] = inside.has_attention && look.heads.empty();
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace candor::apps
