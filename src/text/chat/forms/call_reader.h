#pragma once
// Parses streamed tool calls by the grammar of one model's tool-call format (its form, docs/server.md). A grammar is
// a list of steps; a step that the text does not allow breaks the call, and nothing ever searches for an end mark
// that the grammar does not put there. Every byte is looked at a bounded number of times, however the text is cut.
// One per call; not thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/chat/forms/notation.h"
#include "text/chat/forms/tool_types.h"
#include "text/chat/forms/value_scanner.h"

namespace candor::text {

struct ReadCall {
  std::string name;
  std::string arguments;  // a JSON object
};

struct RegionContent;

// What the steps of a call gather.
struct CallParts {
  const ToolTypes* types = nullptr;       // may be missing
  const RegionContent* region = nullptr;  // of a form that has steps for it
  bool must_be_known = false;             // only tools that `types` knows are called
  std::string name{};
  std::string key{};
  std::vector<std::pair<std::string, std::string>> arguments{};  // key, value as JSON
  std::unordered_map<std::string, size_t> places{};              // of keys in arguments
  std::vector<ReadCall> calls{};

  // Of a key that comes twice the last value counts, where the first stood.
  void add_argument(std::string_view argument, std::string json);
};

// Takes what a step read; false where that cannot be.
using TakePart = bool (*)(CallParts& parts, std::string_view text);

struct GrammarStep {
  enum class Kind : uint8_t {
    kBlanks,   // any, or none
    kMark,     // `text`, then on to `next`; else to `otherwise`
    kPeek,     // as kMark, passing nothing
    kWord,     // everything before one of the bytes of `text`
    kUntil,    // everything before `text`, which is passed
    kField,    // as kUntil, where `text` counts only before blanks and a mark of `follow`: it may stand in the value
    kValue,    // a bracketed value in `notation`
    kSkip,     // everything before one of the marks of `follow`
    kTake,     // nothing is read
    kNothing,  // nothing may follow
    kEnd,      // the calls are whole
  };
  static constexpr uint8_t kBroken = 0xff;  // as `otherwise`
  static constexpr uint8_t kOn = 0xfe;      // as `next`: the step behind this one

  Kind kind;
  std::string_view text = {};
  TakePart take = nullptr;
  uint8_t next = kOn;
  uint8_t otherwise = kBroken;
  std::span<const std::string_view> follow = {};
  const Notation* notation = &kStrictJson;
};

using CallGrammar = std::span<const GrammarStep>;

class CallReader {
 public:
  using State = ValueScanner::State;

  // The grammar and what parts borrow stay as they are.
  CallReader(CallGrammar grammar, CallParts parts) : grammar_(grammar), parts_(std::move(parts)) {}

  // text: all that came since the call began; it may only have grown. is_end: nothing more will come.
  State read(std::string_view text, bool is_end);
  // kWhole: where the calls end. kBroken: where the text left the grammar, behind it all where it ended too early.
  size_t end() const { return at_; }
  std::vector<ReadCall> take_calls() { return std::move(parts_.calls); }

 private:
  enum class Passed : uint8_t { kYes, kMore, kNo };

  Passed pass(const GrammarStep& step, std::string_view text, bool is_end);
  Passed pass_blanks(std::string_view text, bool is_end);
  Passed pass_mark(const GrammarStep& step, std::string_view text, bool is_end);
  Passed pass_word(const GrammarStep& step, std::string_view text);
  Passed pass_skip(const GrammarStep& step, std::string_view text);
  Passed pass_until(const GrammarStep& step, std::string_view text);
  Passed pass_value(const GrammarStep& step, std::string_view text);
  Passed follows(const GrammarStep& step, std::string_view text);
  Passed take(const GrammarStep& step, std::string_view part);

  CallGrammar grammar_;
  CallParts parts_;
  uint8_t step_ = 0;
  size_t at_ = 0;
  size_t searched_ = 0;                    // of the text, for the mark that a step waits for
  size_t n_blanks_ = 0;                    // behind a mark that may end a field, as far as they were counted
  std::optional<ValueScanner> scanner_{};  // of the value that is being read
};

// Parts as most forms write them.
bool take_name(CallParts& parts, std::string_view text);       // blanks around it do not count
bool take_key(CallParts& parts, std::string_view text);        // as well
bool take_text(CallParts& parts, std::string_view text);       // an argument's value, as the schema types it
bool take_calls(CallParts& parts, std::string_view text);      // {"name", "arguments"} or a list of them
bool take_arguments(CallParts& parts, std::string_view text);  // of the call whose name came before
bool take_calls_in(CallParts& parts, std::string_view text, const Notation& notation);
bool take_arguments_in(CallParts& parts, std::string_view text, const Notation& notation);
bool close_call(CallParts& parts, std::string_view text);  // of the arguments that came one by one

}  // namespace candor::text
