#pragma once
// For tests: what the output parser makes of a text in a form (tool-call format), in one line: 'content', (reasoning),
// name{arguments}.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/forms/tool_form.h"
#include "text/chat/forms/tool_types.h"
#include "text/chat/output_parser.h"

namespace candor::text {

struct FormCase {
  std::string text;
  std::string expected;
};

// set(celsius: boolean, city: string, days: integer, extra: object, ratio: number, tags: array, note: string or null)
inline std::shared_ptr<const ToolTypes> weather_types() {
  return ToolTypes::of(
      R"([{"type": "function", "function": {"name": "set", "parameters": {"type": "object", "properties":
    {"celsius": {"type": "boolean"}, "city": {"type": "string"}, "days": {"type": "integer"},
     "extra": {"type": "object"}, "ratio": {"type": "number"}, "tags": {"type": "array"},
     "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "level": {"enum": [1, 2]}}}}},
    {"type": "function", "function": {"name": "f", "parameters": {}}}, {"type": "function", "function": {"name": "g"}}])");
}

struct Parsed {
  std::string line;
  int32_t n_unread = 0;
};

// Fed in pieces that end at each of `cuts`; neighbours of one kind are joined.
inline Parsed parse_cut(const std::string& text, const OutputForm& form, const std::vector<size_t>& cuts) {
  OutputParser parser(form);
  std::vector<OutputPiece> all;
  const auto add = [&all](const std::vector<OutputPiece>& pieces) {
    for (const OutputPiece& piece : pieces) {
      const bool goes_on = !all.empty() && piece.kind != OutputPiece::Kind::kCall && all.back().kind == piece.kind;
      if (goes_on) all.back().text += piece.text;
      if (!goes_on) all.push_back(piece);
    }
  };
  size_t begin = 0;
  for (const size_t end : cuts) {
    add(parser.push(std::string_view(text).substr(begin, end - begin)));
    begin = end;
  }
  add(parser.push(std::string_view(text).substr(begin)));
  add(parser.finish());
  std::string line;
  for (const OutputPiece& piece : all) {
    if (!line.empty()) line += ' ';
    const bool is_content = piece.kind == OutputPiece::Kind::kContent;
    if (piece.kind == OutputPiece::Kind::kCall)
      line += piece.name + piece.text;
    else
      line += (is_content ? "'" : "(") + piece.text + (is_content ? "'" : ")");
  }
  return {.line = line, .n_unread = parser.n_unread()};
}

// Whole, byte by byte, and cut in two at every byte.
inline void expect_form(const FormCase& one, const OutputForm& form, bool is_unread) {
  const Parsed whole = parse_cut(one.text, form, {});
  EXPECT_EQ(whole.line, one.expected) << one.text;
  EXPECT_EQ(whole.n_unread > 0, is_unread) << one.text;
  std::vector<size_t> every;
  for (size_t at = 1; at < one.text.size(); ++at) {
    every.push_back(at);
    const Parsed cut = parse_cut(one.text, form, {at});
    EXPECT_EQ(cut.line, whole.line) << one.text << " cut at " << at;
    EXPECT_EQ(cut.n_unread, whole.n_unread) << one.text << " cut at " << at;
  }
  EXPECT_EQ(parse_cut(one.text, form, every).line, whole.line) << one.text << " byte by byte";
}

// Nothing of it is lost.
inline std::string as_content(const std::string& text) {
  return "'" + text + "'";
}

inline void expect_read(ToolForm tools, const std::vector<FormCase>& cases) {
  const OutputForm form{.tools = tools, .has_reasoning = true, .types = weather_types()};
  for (const FormCase& one : cases) expect_form(one, form, false);
}

inline void expect_unread(ToolForm tools, const std::vector<FormCase>& cases) {
  const OutputForm form{.tools = tools, .has_reasoning = true, .types = weather_types()};
  for (const FormCase& one : cases) expect_form(one, form, true);
}

}  // namespace candor::text
