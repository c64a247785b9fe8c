#pragma once
// Splits the output of a chat model, while it grows, into reasoning, content and tool calls, by the model's output
// format (a form, forms/form_row.h). Text that only looks like the beginning of a mark is held back until it is
// decided, a call until it is whole. A call that cannot be read, or is not whole when the output ends, comes back as
// content.
//
// The pieces, neighbours of one kind joined, do not depend on how the text was cut. Time is linear in the text, memory
// what is held back. One per output; not thread-safe. Marks that are control tokens must be fed as the vocabulary
// writes them.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/response_template.h"
#include "text/chat/forms/tool_form.h"
#include "text/chat/forms/tool_types.h"

namespace candor::text {

// The template knows <think>: the text inside it is reasoning.
bool writes_reasoning(std::string_view template_source);

struct OutputPiece {
  enum class Kind : uint8_t { kContent, kReasoning, kCall };
  Kind kind = Kind::kContent;
  std::string text;  // of a call: its arguments, a JSON object
  std::string name = {};
  bool operator==(const OutputPiece&) const = default;
};

struct OutputForm {
  ToolForm tools = ToolForm::kNone;
  bool has_reasoning = false;       // <think> opens reasoning
  bool opens_in_reasoning = false;  // the prompt ended inside of it
  bool may_call = true;
  std::shared_ptr<const ResponseTemplate> own{};  // with kOwn
  std::shared_ptr<const ToolTypes> types{};  // of the request's tools, where they are known

  // Nothing where there is no form.
  const FormRow* row() const {
    return tools == ToolForm::kOwn && own != nullptr ? &own->row() : form_row(tools);
  }
  // For a request without tools: its output never holds a call.
  OutputForm without_calls() const;
};

class OutputParser {
 public:
  explicit OutputParser(const OutputForm& form);

  std::vector<OutputPiece> push(std::string_view text);
  // What was held back. Nothing may follow.
  std::vector<OutputPiece> finish();
  // Calls that could not be read.
  int32_t n_unread() const { return n_unread_; }

 private:
  using Mode = OutputMode;
  // The first mark that is whole in what is held, and how many bytes at the end may begin one.
  struct Search {
    const FormMark* mark = nullptr;
    size_t at = 0;
    size_t n_open = 0;
  };

  std::span<const FormMark> marks() const;
  Search search() const;
  std::string_view held() const { return std::string_view(held_).substr(taken_); }
  void take(size_t n_bytes);
  size_t leading_blanks();
  bool advance(std::vector<OutputPiece>& pieces);
  bool pass_mark(std::vector<OutputPiece>& pieces);
  void enter(const FormMark& mark, std::string_view before, std::vector<OutputPiece>& pieces);
  bool read_call(std::vector<OutputPiece>& pieces);
  void open_call(std::string_view opening, std::string name);
  Mode enter_message(std::string_view header);
  void emit(std::string_view text, std::vector<OutputPiece>& pieces);
  bool may_be_bare_call();
  bool is_undecided(size_t n_free);

  // Constant after construction.
  OutputForm form_;
  const FormRow* row_ = nullptr;
  std::vector<FormMark> text_marks_;
  std::vector<FormMark> unread_marks_;
  std::string first_bytes_{"<"};  // of all marks

  Mode mode_ = Mode::kText;
  bool is_start_ = true;        // only spaces came, and reasoning
  bool is_after_call_ = false;  // only spaces came since
  bool has_ended_ = false;
  bool is_role_ = false;  // the header that is open began with a role
  std::string held_;                   // from taken_ on
  size_t taken_ = 0;                   // less than a push
  size_t searched_ = 0;                // of held(), where no mark begins
  size_t n_blanks_ = 0;                // that held() begins with, as far as they were counted
  std::optional<CallReader> reader_{};  // of the call that is open
  std::string call_opening_;           // what to give back with a call that cannot be read
  int32_t n_unread_ = 0;
};

}  // namespace candor::text
