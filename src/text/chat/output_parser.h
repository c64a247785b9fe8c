#pragma once
// What a chat model wrote, taken apart while it grows: reasoning, content, calls of tools. A linear state machine over
// the forms in which published models write them; text that only looks like the beginning of a marker is held back
// until it is decided, a call until it is whole. A call that cannot be read (kMaxCallDepth of call_json.h bounds its
// nesting) comes back as content. Time is linear in the text however it is cut, memory what is held back. One per
// output; not thread-safe. Markers that are control tokens must be fed as the vocabulary writes them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace candor::text {

enum class ToolForm : uint8_t {
  kNone,
  kHermes,    // <tool_call>{"name", "arguments"}</tool_call>: Hermes, Qwen
  kLlama,     // {"name", "parameters"} as the whole answer, perhaps behind <|python_tag|>: Llama 3.1
  kMistral,   // [TOOL_CALLS][{"name", "arguments"}, ...]
  kDeepSeek,  // tool call begin, type, separator, name, ```json arguments```, tool call end
  kGptOss,    // <|channel|>analysis|final|commentary to=functions.NAME<|message|>...: harmony
};

// By the markers that the template's source writes.
ToolForm tool_form_of(std::string_view template_source);
// The template knows <think>: what stands in it is reasoning.
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
  enum class Mode : uint8_t { kText, kReasoning, kCall, kHeader };
  struct Marker {
    std::string_view text;
    Mode next;
  };

  std::span<const Marker> markers() const;
  // The first marker that is whole in what is held, and how many bytes at the end may begin one.
  struct Search {
    const Marker* marker = nullptr;
    size_t at = 0;
    size_t n_open = 0;
  };
  Search search() const;
  std::string_view held() const { return std::string_view(held_).substr(taken_); }
  void take(size_t n_bytes);
  size_t leading_blanks();
  bool advance(std::vector<OutputPiece>& pieces);
  void enter(const Marker& marker, std::string_view before, std::vector<OutputPiece>& pieces);
  void emit(std::string_view text, std::vector<OutputPiece>& pieces);
  void close_call(std::string_view body, std::vector<OutputPiece>& pieces);
  bool read_calls(std::string_view body, std::vector<OutputPiece>& pieces) const;
  Mode mode_of_header(std::string_view header);
  bool may_be_bare_call();
  bool is_undecided(size_t n_free);

  // Constant after construction.
  OutputForm form_;
  std::vector<Marker> text_markers_;

  Mode mode_ = Mode::kText;
  bool is_start_ = true;        // only spaces came, and reasoning
  bool is_after_call_ = false;  // only spaces came since
  std::string held_;          // from taken_ on
  size_t taken_ = 0;          // less than a push
  size_t searched_ = 0;       // of held(), where no marker begins
  size_t n_blanks_ = 0;       // that held() begins with, as far as they were counted
  std::string call_name_;     // harmony names the tool in the header
  std::string call_opening_;  // what to give back with a call that cannot be read
  int32_t n_unread_ = 0;
};

}  // namespace candor::text
