#include "text/chat/output_parser.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "text/chat/forms/blanks.h"

namespace candor::text {
namespace {

constexpr std::string_view kChannel = "<|channel|>";
constexpr FormMark kThink{.text = "<think>", .next = OutputMode::kReasoning};

}  // namespace

bool writes_reasoning(std::string_view source) {
  return source.find("</think>") != std::string_view::npos;
}

OutputForm OutputForm::without_calls() const {
  OutputForm form = *this;
  form.may_call = false;
  if (row() == nullptr || !row()->has_channels) form.tools = ToolForm::kNone;
  return form;
}

OutputParser::OutputParser(const OutputForm& form) : form_(form), row_(form_.row()) {
  if (form.has_reasoning) text_marks_.push_back(kThink);
  if (row_ != nullptr) {
    std::ranges::copy_if(row_->marks, std::back_inserter(text_marks_),
                         [&](const FormMark& mark) { return form.may_call || mark.next != Mode::kCall; });
    for (const std::string_view end : row_->ends) unread_marks_.push_back({.text = end});
    for (const FormMark& mark : row_->ends_of_reasoning) first_bytes_ += mark.text.front();
  }
  for (const FormMark& mark : text_marks_) first_bytes_ += mark.text.front();
  for (const FormMark& mark : unread_marks_) first_bytes_ += mark.text.front();
  std::ranges::sort(first_bytes_);
  first_bytes_.erase(std::unique(first_bytes_.begin(), first_bytes_.end()), first_bytes_.end());
  if (form.opens_in_reasoning) mode_ = Mode::kReasoning;
}

std::span<const FormMark> OutputParser::marks() const {
  static constexpr FormMark kEndOfReasoning[] = {{.text = "</think>"}};
  static constexpr FormMark kEndOfHeader[] = {{.text = "<|message|>"}};
  if (mode_ == Mode::kText) return text_marks_;
  if (mode_ == Mode::kUnread) return unread_marks_;
  if (mode_ == Mode::kHeader) return kEndOfHeader;
  return row_ != nullptr && !row_->ends_of_reasoning.empty() ? row_->ends_of_reasoning : kEndOfReasoning;
}

void OutputParser::take(size_t n_bytes) {
  taken_ += n_bytes;
  searched_ = 0;
  n_blanks_ = 0;
}

size_t OutputParser::leading_blanks() {
  n_blanks_ = std::min(held().find_first_not_of(kBlankBytes, n_blanks_), held().size());
  return n_blanks_;
}

// Some models write a call without any mark, as the whole answer.
bool OutputParser::may_be_bare_call() {
  const bool may_be = row_ != nullptr && row_->opens_bare && form_.may_call && is_start_ && mode_ == Mode::kText;
  if (!may_be) return false;
  const size_t n_blanks = leading_blanks();
  return n_blanks < held().size() && held()[n_blanks] == '{';
}

// Spaces that may turn out to stand before a call.
bool OutputParser::is_undecided(size_t n_free) {
  const bool may_be_gap = is_after_call_ || (is_start_ && row_ != nullptr);
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
  const std::string_view text = held();
  Search result;
  for (size_t at = text.find_first_of(first_bytes_, searched_); at < text.size();
       at = text.find_first_of(first_bytes_, at + 1)) {
    const std::string_view rest = text.substr(at);
    for (const FormMark& mark : marks()) {
      const bool is_whole = rest.starts_with(mark.text);
      if (is_whole && result.n_open > rest.size()) return result;  // what begins before it comes first
      if (is_whole) return {.mark = &mark, .at = at};
      if (result.n_open == 0 && !has_ended_ && mark.text.starts_with(rest)) result.n_open = rest.size();
    }
  }
  return result;
}

// Passes one mark or call; false where what is held decides nothing more.
bool OutputParser::advance(std::vector<OutputPiece>& pieces) {
  if (may_be_bare_call()) open_call({}, {});
  return mode_ == Mode::kCall ? read_call(pieces) : pass_mark(pieces);
}

bool OutputParser::pass_mark(std::vector<OutputPiece>& pieces) {
  const Search found = search();
  if (found.mark != nullptr) {
    const std::string_view before = held().substr(0, found.at);
    enter(*found.mark, before, pieces);
    take(found.at + (found.mark->is_part ? 0 : found.mark->text.size()));
    return true;
  }
  const size_t n_free = held().size() - found.n_open;
  searched_ = n_free;
  if (mode_ == Mode::kHeader || is_undecided(n_free)) return false;
  emit(held().substr(0, n_free), pieces);
  take(n_free);
  return false;
}

void OutputParser::enter(const FormMark& mark, std::string_view before, std::vector<OutputPiece>& pieces) {
  if (mode_ == Mode::kHeader) {
    mode_ = enter_message(before);
    return;
  }
  const bool is_blank = mode_ == Mode::kText && trimmed(before).empty();
  const bool is_gap = is_blank && (is_after_call_ || (is_start_ && row_ != nullptr));
  emit(is_gap ? std::string_view{} : before, pieces);
  mode_ = mark.next;
  if (mark.next == Mode::kCall) open_call(mark.is_part ? std::string_view{} : mark.text, {});
  is_role_ = mark.next == Mode::kHeader && mark.text != kChannel;
}

void OutputParser::open_call(std::string_view opening, std::string name) {
  mode_ = Mode::kCall;
  call_opening_ = opening;
  reader_.emplace(row_->grammar, CallParts{.types = form_.types.get(),
                                           .region = row_->region,
                                           .must_be_known = row_->opens_bare && form_.types != nullptr,
                                           .name = std::move(name)});
}

bool OutputParser::read_call(std::vector<OutputPiece>& pieces) {
  const CallReader::State state = reader_->read(held(), has_ended_);
  if (state == CallReader::State::kMore) return false;
  const size_t end = reader_->end();
  if (state == CallReader::State::kWhole) {
    for (ReadCall& call : reader_->take_calls()) {
      pieces.push_back(
          {.kind = OutputPiece::Kind::kCall, .text = std::move(call.arguments), .name = std::move(call.name)});
    }
    mode_ = Mode::kText;
    is_start_ = false;
    is_after_call_ = true;
  } else {
    ++n_unread_;
    mode_ = Mode::kUnread;
    emit(call_opening_ + std::string(held().substr(0, end)), pieces);
  }
  take(end);
  return true;
}

// "analysis", "final", "commentary to=functions.NAME <|constrain|>json"; behind a role the channel has its mark, and
// the tool may stand before it.
OutputParser::Mode OutputParser::enter_message(std::string_view header) {
  constexpr std::string_view kTo = "to=functions.";
  const size_t to = header.find(kTo);
  if (to != std::string_view::npos && form_.may_call) {
    const std::string_view name = header.substr(to + kTo.size());
    open_call({}, std::string(name.substr(0, name.find_first_of(" <\n"))));
    return Mode::kCall;
  }
  if (const size_t channel = header.rfind(kChannel); channel != std::string_view::npos) {
    header.remove_prefix(channel + kChannel.size());
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

std::vector<OutputPiece> OutputParser::finish() {
  has_ended_ = true;
  std::vector<OutputPiece> pieces = push({});
  const bool is_gap = is_after_call_ && trimmed(held_).empty();
  const bool is_text = mode_ != Mode::kHeader || (is_role_ && held_.find('<') == std::string::npos);
  if (mode_ == Mode::kHeader) mode_ = Mode::kText;
  if (is_text && !is_gap) emit(held_, pieces);
  held_.clear();
  return pieces;
}

}  // namespace candor::text
