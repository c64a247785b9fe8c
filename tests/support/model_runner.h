#pragma once
// A model on a backend without an engine: any number of sequences, ragged steps chosen by the test, K/V blocks handed
// out in an order that makes every block table different from the identity.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "model/model.h"

namespace candor::testing {

using Logits = std::vector<float>;  // [V]

class ModelRunner {
 public:
  struct Limits {
    int32_t max_rows = 256;
    int32_t n_blocks = 64;
    int64_t n_ctx = 0;
  };
  // One sequence's part of a step.
  struct Feed {
    size_t sequence;
    std::vector<TokenId> tokens;
    std::vector<backend::AdapterUse> uses{};
  };

  // Fails the running test and gives nullptr where the model cannot be loaded.
  static std::unique_ptr<ModelRunner> make(const formats::ModelFile& file, std::unique_ptr<backend::Backend> backend,
                                           Limits limits) {
    std::unique_ptr<ModelRunner> runner(new ModelRunner(std::move(backend)));
    auto model = model::Model::load(file, *runner->backend_, {.n_ctx = limits.n_ctx});
    EXPECT_TRUE(model) << model.error().message;
    if (!model) return nullptr;
    runner->model_ = std::move(*model);
    const auto reserved = runner->model_->reserve(limits.max_rows, limits.max_rows);
    EXPECT_TRUE(reserved) << reserved.error().message;
    auto kv =
        runner->backend_->make_kv(runner->model_->kv_layout(model::usual_kv(runner->model_->spec(),
                                                                             runner->backend_->info().default_kv)),
                                          {limits.n_blocks, 2 * limits.n_blocks});
    EXPECT_TRUE(kv) << kv.error().message;
    if (!reserved || !kv) return nullptr;
    runner->kv_ = std::move(*kv);
    for (BlockId block = 0; block < limits.n_blocks; ++block) {
      runner->free_.insert(block % 2 == 0 ? runner->free_.begin() : runner->free_.end(), block);
    }
    return runner;
  }

  size_t new_sequence() {
    sequences_.emplace_back();
    return sequences_.size() - 1;
  }
  // A sequence that starts with n_tokens of another one's K/V, copied block by block.
  size_t fork(size_t source, int32_t n_tokens) {
    const size_t copy = new_sequence();
    extend(sequences_[copy], n_tokens);
    for (size_t i = 0; i < sequences_[copy].blocks.size(); ++i) {
      const int32_t left = n_tokens - static_cast<int32_t>(i) * backend::kBlockTokens;
      kv_->copy_block(sequences_[source].blocks[i], sequences_[copy].blocks[i], std::min(left, backend::kBlockTokens));
    }
    sequences_[copy].n_past = n_tokens;
    sequences_[copy].state = sequences_[source].state;  // right where the source has as many tokens
    return copy;
  }
  // Forgets all but the first n_tokens.
  void truncate(size_t sequence, int32_t n_tokens) { sequences_[sequence].n_past = n_tokens; }

  // Runs one step; gives the logits of every row, in the order of the feeds.
  std::vector<Logits> step(const std::vector<Feed>& feeds) {
    Arrays arrays = arrange(feeds);
    backend::StepBatch batch{arrays.tokens,     arrays.positions, arrays.slices, arrays.table,
                             arrays.max_blocks, arrays.out_rows,  arrays.saves};
    batch.uses = arrays.uses;
    const backend::LogitsView view = backend_->read_logits(model_->launch(batch, *kv_));
    std::vector<Logits> logits;
    for (int32_t row = 0; row < view.n_rows; ++row) logits.emplace_back(view.row(row).begin(), view.row(row).end());
    return logits;
  }

  // A new sequence, fed in chunks of at most `chunk` tokens: the logits of every row.
  std::vector<Logits> run(const std::vector<TokenId>& tokens, size_t chunk,
                          const std::vector<backend::AdapterUse>& uses = {}) {
    const size_t sequence = new_sequence();
    std::vector<Logits> logits;
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      const size_t end = std::min(begin + chunk, tokens.size());
      const auto first = tokens.begin();
      for (Logits& row :
           step({{sequence, {first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end)}, uses}})) {
        logits.push_back(std::move(row));
      }
    }
    release(sequence);
    return logits;
  }

  // n_tokens of greedy continuation: largest logit, smallest id among equals.
  std::vector<TokenId> greedy(const std::vector<TokenId>& prompt, size_t n_tokens) {
    const size_t sequence = new_sequence();
    std::vector<TokenId> generated;
    std::vector<Logits> logits = step({{sequence, prompt}});
    while (generated.size() < n_tokens) {
      const Logits& last = logits.back();
      generated.push_back(static_cast<TokenId>(std::max_element(last.begin(), last.end()) - last.begin()));
      if (generated.size() < n_tokens) logits = step({{sequence, {generated.back()}}});
    }
    release(sequence);
    return generated;
  }

  // Gives the blocks back; the sequence may not be used again.
  void release(size_t sequence) {
    std::vector<BlockId>& blocks = sequences_[sequence].blocks;
    free_.insert(free_.end(), blocks.begin(), blocks.end());
    blocks.clear();
  }

  model::Model& model() { return *model_; }
  backend::Backend& backend() { return *backend_; }

 private:
  struct Sequence {
    std::vector<BlockId> blocks;
    int32_t n_past = 0;
    StateId state = kNoState;
  };
  struct Arrays {
    std::vector<TokenId> tokens;
    std::vector<int32_t> positions;
    std::vector<backend::SeqSlice> slices;
    std::vector<BlockId> table;
    int32_t max_blocks = 0;
    std::vector<int32_t> out_rows;
    std::vector<backend::StateSave> saves;
    std::vector<backend::AdapterUse> uses;
  };

  explicit ModelRunner(std::unique_ptr<backend::Backend> backend) : backend_(std::move(backend)) {}

  void extend(Sequence& sequence, int32_t n_tokens) {
    while (static_cast<int32_t>(sequence.blocks.size()) * backend::kBlockTokens < n_tokens) {
      CANDOR_CHECK(!free_.empty());
      sequence.blocks.push_back(free_.back());
      free_.pop_back();
    }
  }

  Arrays arrange(const std::vector<Feed>& feeds) {
    Arrays arrays;
    for (const Feed& feed : feeds) {
      Sequence& sequence = sequences_[feed.sequence];
      const int32_t n_rows = static_cast<int32_t>(feed.tokens.size());
      extend(sequence, sequence.n_past + n_rows);
      arrays.slices.push_back({static_cast<int32_t>(arrays.tokens.size()), n_rows, sequence.n_past,
                               sequence.n_past == 0 ? kNoState : sequence.state,
                               static_cast<int32_t>(arrays.uses.size()), static_cast<int32_t>(feed.uses.size())});
      arrays.uses.insert(arrays.uses.end(), feed.uses.begin(), feed.uses.end());
      for (const TokenId token : feed.tokens) {
        arrays.out_rows.push_back(static_cast<int32_t>(arrays.tokens.size()));
        arrays.tokens.push_back(token);
        arrays.positions.push_back(sequence.n_past++);
      }
      // Two slots a sequence, in turn; without recurrent layers nobody looks at them.
      const auto first = static_cast<StateId>(2 * feed.sequence) % std::max(1, kv_->n_states());
      sequence.state = sequence.state == first ? first + 1 : first;
      arrays.saves.push_back({static_cast<int32_t>(arrays.tokens.size()) - 1, sequence.state});
      arrays.max_blocks = std::max(arrays.max_blocks, static_cast<int32_t>(sequence.blocks.size()));
    }
    for (const Feed& feed : feeds) {
      const std::vector<BlockId>& blocks = sequences_[feed.sequence].blocks;
      arrays.table.insert(arrays.table.end(), blocks.begin(), blocks.end());
      arrays.table.resize(arrays.table.size() + static_cast<size_t>(arrays.max_blocks) - blocks.size(), kNoBlock);
    }
    return arrays;
  }

  std::unique_ptr<backend::Backend> backend_;  // outlives what it made
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<backend::KvStore> kv_;
  std::vector<Sequence> sequences_;
  std::vector<BlockId> free_;
};

}  // namespace candor::testing
