#pragma once
// Reads a tool-call format that the model's own maker describes: response_template in tokenizer_config.json
// (transformers 5.13 and later). Its regions become marks and its calls a grammar for the same reader as the built-in
// formats: a JSON value ends where its grammar says, not at the first occurrence of its end mark.
//
// What such a template may say and this reader cannot do without backtracking is an error that names it; the built-in
// formats are used then. Immutable once made; rows borrow from it.

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/call_writing.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/notation.h"

namespace candor::text {

// How the parsed content of a region becomes a call: what stands in the template's `transform`.
struct CallShape {
  std::string call{"content"};  // path of an object that is the call; empty where name and arguments have their own
  std::string name{};           // path, or the name itself
  std::string arguments{};
  bool is_each = false;        // the content is a list, its elements are calls
  bool name_is_plain = false;  // the name itself
};

// What takes the content of a region apart.
struct RegionContent {
  std::vector<StringMarks> strings{};
  Notation own_notation{};
  const Notation* notation = &kStrictJson;
  CallShape shape{};
  std::string line_end{"\n"};  // of kv-lines
  std::string separator{":"};
};

class ResponseTemplate {
 public:
  // The error's message begins with the field's name: "response_template.fields.tool_calls.open_pattern: ...".
  static Result<std::shared_ptr<const ResponseTemplate>> parse(std::string_view json);
  ResponseTemplate() = default;
  ResponseTemplate(const ResponseTemplate&) = delete;
  ResponseTemplate& operator=(const ResponseTemplate&) = delete;

  const FormRow& row() const { return row_; }

 private:
  friend class ResponseTemplateReader;

  std::deque<std::string> texts_;  // what marks and steps borrow
  std::vector<FormMark> marks_;
  std::vector<FormMark> ends_of_reasoning_;
  std::vector<std::string_view> ends_;
  std::vector<std::string_view> stops_;  // what a region of unknown text is left at
  std::vector<GrammarStep> steps_;
  std::vector<std::string_view> tokens_;  // marks of calls
  CallWriting writing_{};
  RegionContent content_;
  FormRow row_{};
};

}  // namespace candor::text
