#include "text/tokenizer/merge_queue.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/hash.h"

namespace candor::text {

MergeQueue::MergeQueue() : slots_(64, kFree) {}

void MergeQueue::List::push(uint32_t position) {
  if (taken == rising.size()) {
    rising.clear();
    taken = 0;
  }
  if (rising.empty() || position >= rising.back()) {
    rising.push_back(position);
  } else {
    late.push_back(position);
    std::push_heap(late.begin(), late.end(), std::greater<>());
  }
}

uint32_t MergeQueue::List::pop() {
  if (late.empty() || (taken != rising.size() && rising[taken] <= late.front())) return rising[taken++];
  std::pop_heap(late.begin(), late.end(), std::greater<>());
  const uint32_t position = late.back();
  late.pop_back();
  return position;
}

void MergeQueue::push(uint32_t key, uint32_t position) {
  if (last_list_ == kFree || lists_[last_list_].key != key) last_list_ = list_of(key);
  List& list = lists_[last_list_];
  if (list.empty()) {
    heap_.push_back((static_cast<uint64_t>(key) << 32) | last_list_);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  list.push(position);
  ++n_entries_;
}

MergeQueue::Entry MergeQueue::pop() {
  List& list = lists_[static_cast<uint32_t>(heap_.front())];
  const Entry entry{list.key, list.pop()};
  --n_entries_;
  if (list.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
  return entry;
}

size_t MergeQueue::list_of(uint32_t key) {
  if (2 * (lists_.size() + 1) > slots_.size()) grow_slots();
  const size_t mask = slots_.size() - 1;
  size_t at = hash_mix(0, key) & mask;
  while (slots_[at] != kFree && lists_[slots_[at]].key != key) at = (at + 1) & mask;
  if (slots_[at] == kFree) {
    slots_[at] = lists_.size();
    lists_.push_back({key, 0, {}, {}});
  }
  return slots_[at];
}

void MergeQueue::grow_slots() {
  slots_.assign(2 * slots_.size(), kFree);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < lists_.size(); ++i) {
    size_t at = hash_mix(0, lists_[i].key) & mask;
    while (slots_[at] != kFree) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

}  // namespace candor::text
