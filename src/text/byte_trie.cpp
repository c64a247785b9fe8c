#include "text/byte_trie.h"

#include <vector>

#include "base/hash.h"

namespace candor::text {

ByteTrie::ByteTrie() : entries_(1), slots_(16) {
  root_children_.fill(kNone);
}

ByteTrie::Node ByteTrie::insert(std::string_view key) {
  Node node = kRoot;
  for (const char c : key) {
    const Node next = child(node, c);
    node = next == kNone ? add_child(node, c) : next;
  }
  return node;
}

size_t ByteTrie::slot_of(Node node, char byte) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash_mix(static_cast<uint64_t>(node), static_cast<uint8_t>(byte)) & mask;
  while (slots_[at].child != kNone && (slots_[at].parent != node || slots_[at].byte != byte)) at = (at + 1) & mask;
  return at;
}

ByteTrie::Node ByteTrie::add_child(Node parent, char byte) {
  const Node made = n_nodes();
  entries_.push_back({parent, depth(parent) + 1, byte});
  if (parent == kRoot) {
    root_children_[static_cast<uint8_t>(byte)] = made;
    return made;
  }
  if (2 * entries_.size() > slots_.size()) grow_slots();
  slots_[slot_of(parent, byte)] = {parent, made, byte};
  return made;
}

void ByteTrie::grow_slots() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.child != kNone) slots_[slot_of(slot.parent, slot.byte)] = slot;
  }
}

}  // namespace candor::text
