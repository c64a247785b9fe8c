#include "text/tokenizer/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/hash.h"
#include "text/tokenizer/merge_queue.h"

namespace candor::text {
namespace {

// Up to this length, looking at every pair after each merge is faster than a queue (and needs no allocation).
constexpr size_t kShortWord = 48;

uint64_t pair_key(TokenId left, TokenId right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

constexpr uint32_t kNowhere = UINT32_MAX;

// A token of a long word in a linked list; a merged one goes on as its left part.
struct Node {
  uint32_t previous = kNowhere;
  uint32_t next = kNowhere;
  uint32_t rank = MergeTable::kNoRank;  // of the pair that it makes with the next
  TokenId token = kNoToken;             // kNoToken: merged into its left neighbour
};

}  // namespace

MergeTable::MergeTable(size_t n_merges) : slots_(std::bit_ceil(2 * n_merges + 2)) {}

void MergeTable::insert(const Merge& merge, uint32_t rank) {
  const uint64_t pair = pair_key(merge.left, merge.right);
  const size_t mask = slots_.size() - 1;
  size_t at = hash_mix(0, pair) & mask;
  while (slots_[at].rank != kNoRank && slots_[at].pair != pair) at = (at + 1) & mask;
  if (slots_[at].rank == kNoRank) slots_[at] = {pair, rank, merge.merged};
}

const MergeTable::Slot& MergeTable::find(TokenId left, TokenId right) const {
  const uint64_t pair = pair_key(left, right);
  const size_t mask = slots_.size() - 1;
  size_t at = hash_mix(0, pair) & mask;
  while (slots_[at].rank != kNoRank && slots_[at].pair != pair) at = (at + 1) & mask;
  return slots_[at];
}

void MergeTable::merge(std::vector<TokenId>& word) const {
  if (word.size() < 2) return;
  if (word.size() <= kShortWord) {
    merge_short(word);
  } else {
    merge_long(word);
  }
}

void MergeTable::merge_short(std::vector<TokenId>& word) const {
  std::array<uint32_t, kShortWord> ranks;
  size_t n = word.size();
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = find(word[i], word[i + 1]).rank;
  while (n > 1) {
    const auto pairs_end = ranks.begin() + static_cast<std::ptrdiff_t>(n - 1);
    const auto best = std::min_element(ranks.begin(), pairs_end);
    if (*best == kNoRank) break;
    const size_t at = static_cast<size_t>(best - ranks.begin());
    word[at] = find(word[at], word[at + 1]).merged;
    std::copy(word.begin() + static_cast<std::ptrdiff_t>(at + 2), word.begin() + static_cast<std::ptrdiff_t>(n),
              word.begin() + static_cast<std::ptrdiff_t>(at + 1));
    std::copy(best + 1, pairs_end, best);
    --n;
    if (at + 1 < n) ranks[at] = find(word[at], word[at + 1]).rank;
    if (at > 0) ranks[at - 1] = find(word[at - 1], word[at]).rank;
  }
  word.resize(n);
}

void MergeTable::merge_long(std::vector<TokenId>& word) const {
  const uint32_t n = static_cast<uint32_t>(word.size());
  std::vector<Node> nodes(n);
  MergeQueue queue;
  const auto look_right = [&](uint32_t at) {
    Node& node = nodes[at];
    node.rank = node.next == kNowhere ? kNoRank : find(node.token, nodes[node.next].token).rank;
    if (node.rank != kNoRank) queue.push(node.rank, at);
  };
  for (uint32_t i = 0; i < n; ++i)
    nodes[i] = {i == 0 ? kNowhere : i - 1, i + 1 == n ? kNowhere : i + 1, kNoRank, word[i]};
  for (uint32_t i = 0; i < n; ++i) look_right(i);
  while (!queue.empty()) {
    const MergeQueue::Entry best = queue.pop();
    Node& node = nodes[best.position];
    if (node.token == kNoToken || node.rank != best.key) continue;  // outdated
    Node& right = nodes[node.next];
    node.token = find(node.token, right.token).merged;
    right.token = kNoToken;
    node.next = right.next;
    if (node.next != kNowhere) nodes[node.next].previous = best.position;
    if (node.previous != kNowhere) look_right(node.previous);
    look_right(best.position);
  }
  word.clear();
  for (uint32_t i = 0; i != kNowhere; i = nodes[i].next) word.push_back(nodes[i].token);
}

}  // namespace candor::text
