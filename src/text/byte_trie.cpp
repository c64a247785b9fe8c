#include "text/byte_trie.h"

namespace candor::text {

ByteTrie::ByteTrie() : entries_(1) {
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

ByteTrie::Node ByteTrie::child(Node node, char byte) const {
  if (node == kRoot) return root_children_[static_cast<uint8_t>(byte)];
  Node at = entries_[static_cast<size_t>(node)].first_child;
  while (at != kNone && entries_[static_cast<size_t>(at)].byte != byte)
    at = entries_[static_cast<size_t>(at)].next_sibling;
  return at;
}

ByteTrie::Node ByteTrie::add_child(Node parent, char byte) {
  const Node made = n_nodes();
  Entry& above = entries_[static_cast<size_t>(parent)];
  const Entry entry{parent, kNone, above.first_child, above.depth + 1, byte};
  above.first_child = made;
  if (parent == kRoot) root_children_[static_cast<uint8_t>(byte)] = made;
  entries_.push_back(entry);
  return made;
}

}  // namespace candor::text
