#pragma once
// Parses a GBNF grammar (llama.cpp's notation) into a tree of nodes. Neither the parser nor the readers of the tree
// recurse: open groups are kept on a heap-allocated stack, and children come before their parents in the list of nodes,
// so that a reader goes through it in order.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::constrain {

struct GbnfNode {
  enum class Kind : uint8_t { kLiteral, kClass, kRule, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kLiteral;
  std::string text{};               // kLiteral: UTF-8; kClass: a regular expression of one character
  int32_t rule = -1;                // kRule
  int32_t min = 0;                  // kRepeat
  int32_t max = 0;                  // kRepeat; -1 = no limit
  int32_t depth = 0;                // choices and repetitions one inside of another, its own counted
  std::vector<int32_t> children{};  // lower than the node's own index
};

struct GbnfRule {
  std::string name{};
  int32_t body = -1;        // index of its node
  int32_t first_node = -1;  // its nodes begin there and end with the body
  size_t offset = 0;        // of its first mention
};

struct GbnfGrammar {
  std::vector<GbnfNode> nodes{};
  std::vector<GbnfRule> rules{};
  int32_t root = -1;
};

Result<GbnfGrammar> parse_gbnf(std::string_view source);

}  // namespace candor::constrain
