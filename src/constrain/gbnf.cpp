#include "constrain/gbnf.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "constrain/gbnf_grammar.h"

namespace candor::constrain {
namespace {

using Kind = GbnfNode::Kind;

constexpr size_t kMaxLarkBytes = 1 << 20;  // what the compiler reads

// A Lark string literal has the syntax of JSON's.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string wrapped(const char* open, const std::string& text, const char* close) {
  std::string out(open);
  out += text;
  return out += close;
}

class Writer {
 public:
  explicit Writer(const GbnfGrammar& grammar) : grammar_(grammar), texts_(grammar.nodes.size()) {}

  Result<std::string> write() {
    find_regular_rules();
    find_regular_nodes();
    out_ = "start: " + name_of(grammar_.root) + "\n";
    for (int32_t rule = 0; rule < static_cast<int32_t>(grammar_.rules.size()); ++rule) {
      const int32_t body = grammar_.rules[static_cast<size_t>(rule)].body;
      const int32_t first_node = grammar_.rules[static_cast<size_t>(rule)].first_node;
      for (int32_t i = first_node; i <= body; ++i) text_of(i) = is_regular_node(i) ? terminal(i) : rule_text(i);
      out_ += name_of(rule) + ": " + text_of(body) + "\n";
      for (int32_t i = first_node; i <= body; ++i) text_of(i) = {};
      if (out_.size() > kMaxLarkBytes) {
        return fail(ErrorKind::kInvalidInput, "the grammar has more than " + std::to_string(kMaxLarkBytes) +
                                                  " bytes as the grammar compiler reads it");
      }
    }
    return std::move(out_);
  }

 private:
  const GbnfNode& node(int32_t i) const { return grammar_.nodes[static_cast<size_t>(i)]; }
  std::string& text_of(int32_t i) { return texts_[static_cast<size_t>(i)]; }
  bool is_regular_node(int32_t i) const { return node_is_regular_[static_cast<size_t>(i)]; }
  std::string name_of(int32_t rule) const {
    std::string name(1, is_regular_[static_cast<size_t>(rule)] ? 'T' : 'r');
    return name += std::to_string(rule);
  }

  // A rule is regular when all that it uses are: those that lead back to themselves never get there.
  void find_regular_rules() {
    const size_t n = grammar_.rules.size();
    is_regular_.assign(n, false);
    std::vector<std::vector<int32_t>> users(n);
    std::vector<size_t> n_open(n);
    std::vector<int32_t> ready;
    for (size_t rule = 0; rule < n; ++rule) {
      for (int32_t i = grammar_.rules[rule].first_node; i <= grammar_.rules[rule].body; ++i) {
        if (node(i).kind != Kind::kRule) continue;
        users[static_cast<size_t>(node(i).rule)].push_back(static_cast<int32_t>(rule));
        ++n_open[rule];
      }
      if (n_open[rule] == 0) ready.push_back(static_cast<int32_t>(rule));
    }
    while (!ready.empty()) {
      const size_t rule = static_cast<size_t>(ready.back());
      ready.pop_back();
      is_regular_[rule] = true;
      for (const int32_t user : users[rule]) {
        if (--n_open[static_cast<size_t>(user)] == 0) ready.push_back(user);
      }
    }
  }

  void find_regular_nodes() {
    for (const GbnfNode& n : grammar_.nodes) {
      const bool of_rule = n.kind != Kind::kRule || is_regular_[static_cast<size_t>(n.rule)];
      node_is_regular_.push_back(of_rule &&
                                 std::ranges::all_of(n.children, [&](int32_t c) { return is_regular_node(c); }));
    }
  }

  static std::string repeated(const std::string& text, const GbnfNode& repeat) {
    if (repeat.max < 0 && repeat.min <= 1) return wrapped("(", text, repeat.min == 0 ? ")*" : ")+");
    if (repeat.min == 0 && repeat.max == 1) return wrapped("(", text, ")?");
    const std::string counts = std::to_string(repeat.min) + "," + (repeat.max < 0 ? "" : std::to_string(repeat.max));
    return wrapped("(", text, "){") + counts + "}";
  }

  // The body of a terminal. Takes the texts of the node's children.
  std::string terminal(int32_t index) {
    const GbnfNode& n = node(index);
    switch (n.kind) {
      case Kind::kLiteral:
        return quoted(n.text);
      case Kind::kClass:
        return wrapped("/", n.text, "/");
      case Kind::kRule:
        return name_of(n.rule);
      case Kind::kSequence:
        return joined(n.children, " ");
      case Kind::kChoice:
        return wrapped("(", joined(n.children, " | "), ")");
      case Kind::kRepeat:
        return repeated(std::exchange(text_of(n.children.front()), {}), n);
    }
    return {};
  }

  std::string joined(const std::vector<int32_t>& children, const char* between) {
    std::string text;
    for (const int32_t child : children) {
      if (!text.empty()) text += between;
      text += std::exchange(text_of(child), {});
    }
    return text;
  }

  std::string new_terminal(const std::string& body) {
    std::string name(1, 'P');
    name += std::to_string(n_parts_++);
    out_ += name + ": " + body + "\n";
    return name;
  }

  // The body of a rule; what is regular in it becomes terminals of their own. Takes the texts of the node's children.
  std::string rule_text(int32_t index) {
    const GbnfNode& n = node(index);
    if (n.kind == Kind::kRule) return name_of(n.rule);
    if (n.kind == Kind::kSequence) return sequence_text(n.children);
    for (const int32_t child : n.children) {
      if (is_regular_node(child) && node(child).kind != Kind::kRule) text_of(child) = new_terminal(text_of(child));
    }
    if (n.kind == Kind::kRepeat) return repeated(std::exchange(text_of(n.children.front()), {}), n);
    return wrapped("(", joined(n.children, " | "), ")");
  }

  std::string sequence_text(const std::vector<int32_t>& children) {
    std::string text;
    std::string run;  // neighbours that are regular
    const auto end_run = [&] {
      if (run.empty()) return;
      text += ' ';
      text += new_terminal(std::exchange(run, {}));
    };
    for (const int32_t child : children) {
      if (!is_regular_node(child)) end_run();
      std::string& to = is_regular_node(child) ? run : text;
      to += ' ';
      to += std::exchange(text_of(child), {});
    }
    end_run();
    return text;
  }

  const GbnfGrammar& grammar_;
  std::vector<bool> is_regular_;       // [rules]
  std::vector<bool> node_is_regular_;  // [nodes]
  std::vector<std::string> texts_;     // [nodes], until the parent's has them
  std::string out_;
  int32_t n_parts_ = 0;
};

}  // namespace

Result<std::string> lark_of_gbnf(std::string_view source) {
  CANDOR_ASSIGN(const GbnfGrammar grammar, parse_gbnf(source));
  return Writer(grammar).write();
}

}  // namespace candor::constrain
