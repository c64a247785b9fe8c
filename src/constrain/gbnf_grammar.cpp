#include "constrain/gbnf_grammar.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"

namespace candor::constrain {
namespace {

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxRules = 8000;
constexpr int32_t kMaxDepth = 256;
constexpr int32_t kMaxCount = 100000;
constexpr uint32_t kLastCodePoint = 0x10ffff;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// An open parenthesis, or the body of a rule.
struct Group {
  size_t offset = 0;
  std::vector<int32_t> options{};  // that are complete
  std::vector<int32_t> sequence{};
};

class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source) {}

  Result<GbnfGrammar> parse();

 private:
  Result<void> parse_rule();
  Result<int32_t> parse_body();
  Result<int32_t> parse_item();
  Result<int32_t> parse_literal();
  Result<int32_t> parse_class();
  Result<int32_t> parse_repeats(int32_t item);
  Result<void> parse_braces(GbnfNode& repeat);
  Result<int32_t> parse_count();
  Result<uint32_t> parse_char();
  Result<uint32_t> parse_hex(size_t n_digits);
  std::string_view parse_name();
  Result<void> check_rules();

  bool at_end() const { return at_ >= source_.size(); }
  char peek() const { return at_end() ? '\0' : source_[at_]; }
  bool take(std::string_view text) {
    if (source_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  void skip_space(bool over_lines);
  bool at_sequence_end() const { return at_end() || std::string_view("|)\n\r").find(peek()) != std::string_view::npos; }
  Result<int32_t> add(GbnfNode node);
  Result<int32_t> add_of(GbnfNode::Kind kind, std::vector<int32_t>&& children);
  int32_t rule_of(std::string_view name, size_t offset);
  Error error(const std::string& message, size_t offset) const;
  Error error(const std::string& message) const { return error(message, at_); }

  std::string_view source_;
  size_t at_ = 0;
  GbnfGrammar grammar_;
  std::unordered_map<std::string, int32_t> rule_index_;
};

Error Parser::error(const std::string& message, size_t offset) const {
  const std::string_view before = source_.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const size_t line_begin = before.rfind('\n') + 1;  // 0 where there is none
  return fail(ErrorKind::kInvalidInput, "grammar, line " + std::to_string(line) + ", column " +
                                            std::to_string(offset - line_begin + 1) + ": " + message);
}

void Parser::skip_space(bool over_lines) {
  while (!at_end()) {
    const char c = peek();
    if (c == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
      ++at_;
    } else {
      return;
    }
  }
}

std::string_view Parser::parse_name() {
  const size_t begin = at_;
  while (!at_end() && is_name_char(peek())) ++at_;
  return source_.substr(begin, at_ - begin);
}

int32_t Parser::rule_of(std::string_view name, size_t offset) {
  const auto [it, is_new] = rule_index_.try_emplace(std::string(name), static_cast<int32_t>(grammar_.rules.size()));
  if (is_new) grammar_.rules.push_back({.name = std::string(name), .offset = offset});
  return it->second;
}

Result<GbnfGrammar> Parser::parse() {
  if (source_.size() > kMaxBytes) {
    return fail(ErrorKind::kInvalidInput, "the grammar has " + std::to_string(source_.size()) +
                                              " bytes, expected at most " + std::to_string(kMaxBytes));
  }
  if (first_invalid_utf8(source_) < source_.size())
    return fail(ErrorKind::kInvalidInput, "the grammar is not valid UTF-8");
  for (skip_space(true); !at_end(); skip_space(true)) CANDOR_TRY(parse_rule());
  CANDOR_TRY(check_rules());
  return std::move(grammar_);
}

Result<void> Parser::check_rules() {
  for (const GbnfRule& rule : grammar_.rules) {
    if (rule.body < 0)
      return error("the rule \"" + rule.name.substr(0, 60) + "\" is used and not defined", rule.offset);
  }
  const auto root = rule_index_.find("root");
  if (root == rule_index_.end()) return fail(ErrorKind::kInvalidInput, "the grammar has no rule \"root\" to begin at");
  grammar_.root = root->second;
  return {};
}

Result<void> Parser::parse_rule() {
  const size_t begin = at_;
  const std::string_view name = parse_name();
  if (name.empty()) return error("expected the name of a rule");
  skip_space(false);
  if (!take("::=")) return error("expected ::= behind the rule's name");
  const int32_t rule = rule_of(name, begin);
  if (grammar_.rules.size() > kMaxRules) return error("more than " + std::to_string(kMaxRules) + " rules");
  if (grammar_.rules[static_cast<size_t>(rule)].body >= 0) {
    return error("the rule \"" + std::string(name.substr(0, 60)) + "\" is defined twice", begin);
  }
  skip_space(true);
  const int32_t first_node = static_cast<int32_t>(grammar_.nodes.size());
  CANDOR_ASSIGN(const int32_t body, parse_body());
  grammar_.rules[static_cast<size_t>(rule)].body = body;
  grammar_.rules[static_cast<size_t>(rule)].first_node = first_node;
  if (at_end() || peek() == '\n' || peek() == '\r') return {};
  return error("expected the end of the line, is '" + std::string(1, peek()) + "'");
}

Result<int32_t> Parser::add(GbnfNode node) {
  for (const int32_t child : node.children)
    node.depth = std::max(node.depth, grammar_.nodes[static_cast<size_t>(child)].depth);
  if (node.kind == GbnfNode::Kind::kChoice || node.kind == GbnfNode::Kind::kRepeat) ++node.depth;
  if (node.depth > kMaxDepth) return error("nested deeper than " + std::to_string(kMaxDepth));
  grammar_.nodes.push_back(std::move(node));
  return static_cast<int32_t>(grammar_.nodes.size()) - 1;
}

// Of one child, that child; of none, the empty literal.
Result<int32_t> Parser::add_of(GbnfNode::Kind kind, std::vector<int32_t>&& children) {
  if (children.size() == 1) return children.front();
  if (children.empty()) return add({});
  return add({.kind = kind, .children = std::move(children)});
}

Result<int32_t> Parser::parse_body() {
  std::vector<Group> open(1);
  while (true) {
    const bool is_inside = open.size() > 1;
    skip_space(is_inside);
    if (take("(")) {
      if (open.size() > kMaxDepth) return error("nested deeper than " + std::to_string(kMaxDepth));
      open.push_back({.offset = at_ - 1});
      continue;
    }
    int32_t item = -1;
    if (!at_sequence_end()) {
      CANDOR_ASSIGN(item, parse_item());
    } else {
      CANDOR_ASSIGN(const int32_t option, add_of(GbnfNode::Kind::kSequence, std::exchange(open.back().sequence, {})));
      open.back().options.push_back(option);
      const size_t line_end = at_;
      skip_space(true);
      if (take("|")) {
        skip_space(true);
        continue;
      }
      CANDOR_ASSIGN(item, add_of(GbnfNode::Kind::kChoice, std::move(open.back().options)));
      if (!is_inside) {
        at_ = line_end;
        return item;
      }
      if (!take(")")) return error("expected ) for the ( here", open.back().offset);
      open.pop_back();
    }
    CANDOR_ASSIGN(const int32_t repeated, parse_repeats(item));
    open.back().sequence.push_back(repeated);
  }
}

Result<int32_t> Parser::parse_item() {
  const size_t begin = at_;
  if (peek() == '"') return parse_literal();
  if (peek() == '[') return parse_class();
  if (take(".")) return add({.kind = GbnfNode::Kind::kClass, .text = "(?s:.)"});
  const std::string_view name = parse_name();
  if (name.empty()) return error("expected a literal, a class, a group or a rule, is '" + std::string(1, peek()) + "'");
  return add({.kind = GbnfNode::Kind::kRule, .rule = rule_of(name, begin)});
}

Result<uint32_t> Parser::parse_hex(size_t n_digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < n_digits; ++i, ++at_) {
    const int digit = hex_value(peek());
    if (at_end() || digit < 0) return error("expected " + std::to_string(n_digits) + " hexadecimal digits");
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  if (value > kLastCodePoint || (value >= 0xd800 && value < 0xe000)) return error("no such character");
  return value;
}

// One character of a literal or class, escaped or as it stands.
Result<uint32_t> Parser::parse_char() {
  if (take("\\x")) return parse_hex(2);
  if (take("\\u")) return parse_hex(4);
  if (take("\\U")) return parse_hex(8);
  if (take("\\")) {
    constexpr std::pair<char, char> kEscapes[] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'}, {'"', '"'},
                                                  {'[', '['},  {']', ']'},  {'-', '-'},  {'^', '^'},   {'/', '/'}};
    for (const auto& [name, meant] : kEscapes) {
      if (take(std::string_view(&name, 1))) return static_cast<uint32_t>(static_cast<unsigned char>(meant));
    }
    return error(
        "an unknown escape: expected one of \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\/ \\xNN \\uNNNN \\UNNNNNNNN");
  }
  const CodePoint decoded = decode_utf8(source_, at_);
  at_ += decoded.length;
  return decoded.value;
}

Result<int32_t> Parser::parse_literal() {
  const size_t begin = at_++;
  GbnfNode literal;
  while (!take("\"")) {
    if (at_end() || peek() == '\n') return error("a literal without its closing \"", begin);
    CANDOR_ASSIGN(const uint32_t code_point, parse_char());
    append_utf8(literal.text, code_point);
  }
  return add(std::move(literal));
}

Result<int32_t> Parser::parse_class() {
  const size_t begin = at_++;
  GbnfNode node{.kind = GbnfNode::Kind::kClass, .text = take("^") ? "[^" : "["};
  const size_t n_opening = node.text.size();
  while (!take("]")) {
    if (at_end() || peek() == '\n') return error("a class without its closing ]", begin);
    CANDOR_ASSIGN(const uint32_t first, parse_char());
    uint32_t last = first;
    if (peek() == '-' && source_.substr(at_ + 1, 1) != "]") {
      ++at_;
      CANDOR_ASSIGN(last, parse_char());
    }
    if (last < first) return error("a class with a range that runs backwards", begin);
    char range[40];
    std::snprintf(range, sizeof range, "\\x{%x}-\\x{%x}", first, last);
    node.text += range;
  }
  if (node.text.size() == n_opening) return error("a class of no characters", begin);
  node.text += "]";
  return add(std::move(node));
}

Result<int32_t> Parser::parse_repeats(int32_t item) {
  while (true) {
    GbnfNode repeat{.kind = GbnfNode::Kind::kRepeat, .max = -1, .children = {item}};
    if (take("{")) {
      CANDOR_TRY(parse_braces(repeat));
    } else if (take("+")) {
      repeat.min = 1;
    } else if (take("?")) {
      repeat.max = 1;
    } else if (!take("*")) {
      return item;
    }
    CANDOR_ASSIGN(item, add(std::move(repeat)));
  }
}

Result<int32_t> Parser::parse_count() {
  int32_t value = 0;
  const size_t begin = at_;
  for (; peek() >= '0' && peek() <= '9'; ++at_) {
    value = value * 10 + (peek() - '0');
    if (value > kMaxCount) return error("a repetition above the limit of " + std::to_string(kMaxCount), begin);
  }
  if (at_ == begin) return error("expected a number");
  skip_space(false);
  return value;
}

Result<void> Parser::parse_braces(GbnfNode& repeat) {
  skip_space(false);
  if (peek() != ',') {
    CANDOR_ASSIGN(repeat.min, parse_count());
  }
  repeat.max = repeat.min;
  if (take(",")) {
    skip_space(false);
    repeat.max = -1;
    if (peek() != '}') {
      CANDOR_ASSIGN(repeat.max, parse_count());
    }
  }
  if (!take("}")) return error("expected }");
  if (repeat.max >= 0 && repeat.max < repeat.min) return error("a repetition of more than its own maximum");
  return {};
}

}  // namespace

Result<GbnfGrammar> parse_gbnf(std::string_view source) {
  return Parser(source).parse();
}

}  // namespace candor::constrain
