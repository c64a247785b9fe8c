#include "text/chat/output_parser.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/chat/call_json.h"

namespace candor::text {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDeepSeekCall =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "call\xe2\x96\x81"
    "begin\xef\xbd\x9c>";
constexpr std::string_view kDeepSeekEnd =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "call\xe2\x96\x81"
    "end\xef\xbd\x9c>";
constexpr std::string_view kDeepSeekSeparator = "<\xef\xbd\x9ctool\xe2\x96\x81sep\xef\xbd\x9c>";
constexpr std::string_view kDeepSeekCalls =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "calls\xe2\x96\x81"
    "begin\xef\xbd\x9c>";
constexpr std::string_view kDeepSeekCallsEnd =
    "<\xef\xbd\x9ctool\xe2\x96\x81"
    "calls\xe2\x96\x81"
    "end\xef\xbd\x9c>";
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Arguments as the text of a JSON object; a string is taken as that text.
std::optional<std::string> arguments_of(const Json& call) {
  for (const char* name : {"arguments", "parameters"}) {
    const auto it = call.find(name);
    if (it == call.end()) continue;
    if (it->is_object()) return it->dump();
    if (!it->is_string()) return std::nullopt;
    const auto inner = read_call_json(it->get_ref<const std::string&>());
    return inner && inner->is_object() ? std::optional(inner->dump()) : std::nullopt;
  }
  return "{}";
}

bool add_call(const Json& call, std::vector<OutputPiece>& calls) {
  const auto name = call.is_object() ? call.find("name") : call.end();
  if (!call.is_object() || name == call.end() || !name->is_string()) return false;
  auto arguments = arguments_of(call);
  if (!arguments) return false;
  calls.push_back({.kind = OutputPiece::Kind::kCall, .text = std::move(*arguments), .name = name->get<std::string>()});
  return true;
}

bool read_json(std::string_view body, std::vector<OutputPiece>& calls) {
  const auto json = read_call_json(body);
  if (!json) return false;
  if (!json->is_array()) return add_call(*json, calls);
  return !json->empty() && std::ranges::all_of(*json, [&](const Json& call) { return add_call(call, calls); });
}

// "function<sep>NAME\n```json\n{...}\n```", or "NAME<sep>{...}" as later models write it.
bool read_deepseek(std::string_view body, std::vector<OutputPiece>& calls) {
  const size_t separator = body.find(kDeepSeekSeparator);
  if (separator == std::string_view::npos) return false;
  const size_t begin = body.find('{', separator);
  const size_t end = body.rfind('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return false;
  const auto arguments = read_call_json(body.substr(begin, end - begin + 1));
  std::string_view name = trimmed(body.substr(0, separator));
  if (name == "function") {
    name = body.substr(separator + kDeepSeekSeparator.size());
    name = trimmed(name.substr(0, name.find('\n')));
  }
  if (!arguments || !arguments->is_object() || name.empty()) return false;
  calls.push_back({.kind = OutputPiece::Kind::kCall, .text = arguments->dump(), .name = std::string(name)});
  return true;
}

}  // namespace

ToolForm tool_form_of(std::string_view source) {
  const auto has = [source](std::string_view text) { return source.find(text) != std::string_view::npos; };
  if (has("<|channel|>")) return ToolForm::kGptOss;
  if (has(kDeepSeekCall)) return ToolForm::kDeepSeek;
  if (has("[TOOL_CALLS]")) return ToolForm::kMistral;
  if (has("<tool_call>")) return ToolForm::kHermes;
  if (has("<|python_tag|>") || has("\"parameters\": ")) return ToolForm::kLlama;
  return ToolForm::kNone;
}

bool writes_reasoning(std::string_view source) {
  return source.find("</think>") != std::string_view::npos;
}

OutputParser::OutputParser(const OutputForm& form) : form_(form) {
  if (form.has_reasoning) text_markers_.push_back({"<think>", Mode::kReasoning});
  switch (form.tools) {
    case ToolForm::kHermes:
      text_markers_.push_back({"<tool_call>", Mode::kCall});
      break;
    case ToolForm::kLlama:
      text_markers_.push_back({"<|python_tag|>", Mode::kCall});
      break;
    case ToolForm::kMistral:
      text_markers_.push_back({"[TOOL_CALLS]", Mode::kCall});
      break;
    case ToolForm::kDeepSeek:
      text_markers_.push_back({kDeepSeekCall, Mode::kCall});
      text_markers_.push_back({kDeepSeekCalls, Mode::kText});
      text_markers_.push_back({kDeepSeekCallsEnd, Mode::kText});
      break;
    case ToolForm::kGptOss:
      text_markers_ = {{"<|channel|>", Mode::kHeader},
                       {"<|start|>assistant", Mode::kText},
                       {"<|end|>", Mode::kText},
                       {"<|return|>", Mode::kText}};
      break;
    case ToolForm::kNone:
      break;
  }
  if (form.opens_in_reasoning) mode_ = Mode::kReasoning;
}

std::span<const OutputParser::Marker> OutputParser::markers() const {
  static constexpr Marker kEndOfReasoning[] = {{"</think>", Mode::kText}};
  static constexpr Marker kEndOfAnalysis[] = {{"<|end|>", Mode::kText}, {"<|channel|>", Mode::kHeader}};
  static constexpr Marker kEndOfHeader[] = {{"<|message|>", Mode::kText}};
  static constexpr Marker kEndOfHarmonyCall[] = {{"<|call|>", Mode::kText}, {"<|end|>", Mode::kText}};
  static constexpr Marker kEndOfHermesCall[] = {{"</tool_call>", Mode::kText}};
  static constexpr Marker kEndOfDeepSeekCall[] = {{kDeepSeekEnd, Mode::kText}};
  if (mode_ == Mode::kText) return text_markers_;
  if (mode_ == Mode::kHeader) return kEndOfHeader;
  if (mode_ == Mode::kReasoning) {
    return form_.tools == ToolForm::kGptOss ? std::span<const Marker>(kEndOfAnalysis) : kEndOfReasoning;
  }
  if (form_.tools == ToolForm::kHermes) return kEndOfHermesCall;
  if (form_.tools == ToolForm::kDeepSeek) return kEndOfDeepSeekCall;
  if (form_.tools == ToolForm::kGptOss) return kEndOfHarmonyCall;
  return {};  // to the end of the output
}

void OutputParser::take(size_t n_bytes) {
  taken_ += n_bytes;
  searched_ = 0;
  n_blanks_ = 0;
}

size_t OutputParser::leading_blanks() {
  n_blanks_ = std::min(held().find_first_not_of(kBlanks, n_blanks_), held().size());
  return n_blanks_;
}

// Llama writes a call without any marker, as the whole answer.
bool OutputParser::may_be_bare_call() {
  if (form_.tools != ToolForm::kLlama || !is_start_ || mode_ != Mode::kText) return false;
  const size_t n_blanks = leading_blanks();
  return n_blanks < held().size() && held()[n_blanks] == '{';
}

// Spaces that may turn out to stand before a bare call, or between two calls.
bool OutputParser::is_undecided(size_t n_free) {
  const bool may_be_gap = is_after_call_ || (form_.tools == ToolForm::kLlama && is_start_);
  return mode_ == Mode::kText && may_be_gap && leading_blanks() >= n_free;
}

std::vector<OutputPiece> OutputParser::push(std::string_view text) {
  std::vector<OutputPiece> pieces;
  held_.append(text);
  while (advance(pieces)) {
  }
  held_.erase(0, std::exchange(taken_, 0));
  return pieces;
}

OutputParser::Search OutputParser::search() const {
  constexpr std::string_view kFirstBytes = "<[";  // of every marker
  const std::string_view text = held();
  Search result;
  for (size_t at = text.find_first_of(kFirstBytes, searched_); at < text.size();
       at = text.find_first_of(kFirstBytes, at + 1)) {
    const std::string_view rest = text.substr(at);
    for (const Marker& marker : markers()) {
      if (rest.starts_with(marker.text)) return {.marker = &marker, .at = at};
      if (result.n_open == 0 && marker.text.starts_with(rest)) result.n_open = rest.size();
    }
  }
  return result;
}

// Passes one marker; false when none is whole.
bool OutputParser::advance(std::vector<OutputPiece>& pieces) {
  if (may_be_bare_call()) {
    mode_ = Mode::kCall;
    call_opening_.clear();
  }
  const Search found = search();
  if (found.marker != nullptr) {
    const std::string_view before = held().substr(0, found.at);
    enter(*found.marker, before, pieces);
    take(found.at + found.marker->text.size());
    return true;
  }
  const size_t n_free = held().size() - found.n_open;
  searched_ = n_free;
  if (mode_ != Mode::kText && mode_ != Mode::kReasoning) return false;
  if (is_undecided(n_free)) return false;
  emit(held().substr(0, n_free), pieces);
  take(n_free);
  return false;
}

void OutputParser::enter(const Marker& marker, std::string_view before, std::vector<OutputPiece>& pieces) {
  Mode next = marker.next;
  if (mode_ == Mode::kCall) {
    close_call(before, pieces);
  } else if (mode_ == Mode::kHeader) {
    next = mode_of_header(before);
  } else {
    const bool is_gap = mode_ == Mode::kText && trimmed(before).empty() && (next == Mode::kCall || is_after_call_);
    emit(is_gap ? std::string_view{} : before, pieces);
  }
  if (next == Mode::kCall) call_opening_ = marker.text;
  mode_ = next;
}

// "analysis", "final", "commentary to=functions.NAME <|constrain|>json"
OutputParser::Mode OutputParser::mode_of_header(std::string_view header) {
  constexpr std::string_view kTo = "to=functions.";
  const size_t to = header.find(kTo);
  if (to != std::string_view::npos) {
    const std::string_view name = header.substr(to + kTo.size());
    call_name_ = std::string(name.substr(0, name.find_first_of(" <\n")));
    return Mode::kCall;
  }
  return trimmed(header).starts_with("analysis") ? Mode::kReasoning : Mode::kText;
}

void OutputParser::emit(std::string_view text, std::vector<OutputPiece>& pieces) {
  if (text.empty()) return;
  is_start_ = is_start_ && mode_ == Mode::kReasoning;
  is_after_call_ = false;
  const auto kind = mode_ == Mode::kReasoning ? OutputPiece::Kind::kReasoning : OutputPiece::Kind::kContent;
  if (!pieces.empty() && pieces.back().kind == kind) {
    pieces.back().text.append(text);
  } else {
    pieces.push_back({.kind = kind, .text = std::string(text)});
  }
}

bool OutputParser::read_calls(std::string_view body, std::vector<OutputPiece>& pieces) const {
  if (form_.tools == ToolForm::kDeepSeek) return read_deepseek(body, pieces);
  if (form_.tools != ToolForm::kGptOss) return read_json(trimmed(body), pieces);
  const auto arguments = read_call_json(body);
  if (!arguments || !arguments->is_object() || call_name_.empty()) return false;
  pieces.push_back({.kind = OutputPiece::Kind::kCall, .text = arguments->dump(), .name = call_name_});
  return true;
}

void OutputParser::close_call(std::string_view body, std::vector<OutputPiece>& pieces) {
  std::vector<OutputPiece> calls;
  mode_ = Mode::kText;
  if (read_calls(body, calls)) {
    std::ranges::move(calls, std::back_inserter(pieces));
    is_after_call_ = true;
    return;
  }
  ++n_unread_;
  emit(call_opening_ + std::string(body), pieces);
}

std::vector<OutputPiece> OutputParser::finish() {
  std::vector<OutputPiece> pieces;
  const std::string rest = std::exchange(held_, {});
  take(0);
  if (mode_ == Mode::kCall) {
    close_call(rest, pieces);
  } else if (mode_ != Mode::kHeader && !(is_after_call_ && trimmed(rest).empty())) {
    emit(rest, pieces);
  }
  return pieces;
}

}  // namespace candor::text
