#pragma once
// A trie over bytes. Users keep their values in arrays indexed by node. The root's children are a table, those of other
// nodes are in one hash table: a step costs the same however many children a node has. Immutable once filled; const
// methods may be called from any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace candor::text {

class ByteTrie {
 public:
  using Node = int32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = -1;

  ByteTrie();

  // The node of the whole key, made if needed. REQUIRES: !key.empty().
  Node insert(std::string_view key);
  // kNone when the node has no such child.
  Node child(Node node, char byte) const {
    return node == kRoot ? root_children_[static_cast<uint8_t>(byte)] : slots_[slot_of(node, byte)].child;
  }
  // One past the highest node; parents come before their children.
  Node n_nodes() const { return static_cast<Node>(entries_.size()); }
  Node parent(Node node) const { return entries_[static_cast<size_t>(node)].parent; }
  char byte(Node node) const { return entries_[static_cast<size_t>(node)].byte; }
  int32_t depth(Node node) const { return entries_[static_cast<size_t>(node)].depth; }

 private:
  struct Entry {
    Node parent = kNone;
    int32_t depth = 0;
    char byte = 0;
  };
  struct Slot {
    Node parent = kNone;
    Node child = kNone;  // kNone: free
    char byte = 0;
  };

  // The slot of that child, or the free one where it would go.
  size_t slot_of(Node node, char byte) const;
  Node add_child(Node parent, char byte);
  void grow_slots();

  std::vector<Entry> entries_;
  std::array<Node, 256> root_children_;
  std::vector<Slot> slots_;  // open addressing; a power of two of them, at most half used
};

}  // namespace candor::text
