#include "text/chat/forms/call_reader.h"

#include <algorithm>

#include "text/chat/forms/blanks.h"

namespace candor::text {
namespace {

size_t behind_blanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kBlankBytes, at), text.size());
}

}  // namespace

CallReader::State CallReader::read(std::string_view text, bool is_end) {
  while (step_ != GrammarStep::kBroken) {
    const GrammarStep& step = grammar_[step_];
    if (step.kind == GrammarStep::Kind::kEnd) return State::kWhole;
    const Passed passed = pass(step, text, is_end);
    if (passed == Passed::kMore && !is_end) return State::kMore;
    if (passed == Passed::kMore && step.otherwise == GrammarStep::kBroken) at_ = text.size();
    const bool is_passed = passed == Passed::kYes;
    const auto behind = static_cast<uint8_t>(step_ + 1);
    step_ = is_passed ? (step.next == GrammarStep::kOn ? behind : step.next) : step.otherwise;
    searched_ = n_blanks_ = 0;
    scanner_.reset();
  }
  return State::kBroken;
}

CallReader::Passed CallReader::pass(const GrammarStep& step, std::string_view text, bool is_end) {
  switch (step.kind) {
    case GrammarStep::Kind::kBlanks:
      return pass_blanks(text, is_end);
    case GrammarStep::Kind::kMark:
    case GrammarStep::Kind::kPeek:
      return pass_mark(step, text, is_end);
    case GrammarStep::Kind::kWord:
      return pass_word(step, text);
    case GrammarStep::Kind::kSkip:
      return pass_skip(step, text);
    case GrammarStep::Kind::kUntil:
    case GrammarStep::Kind::kField:
      return pass_until(step, text);
    case GrammarStep::Kind::kValue:
      return pass_value(step, text);
    case GrammarStep::Kind::kTake:
      return take(step, {});
    case GrammarStep::Kind::kNothing:
      return at_ < text.size() ? Passed::kNo : is_end ? Passed::kYes : Passed::kMore;
    case GrammarStep::Kind::kEnd:
      break;
  }
  return Passed::kYes;
}

CallReader::Passed CallReader::take(const GrammarStep& step, std::string_view part) {
  return step.take == nullptr || step.take(parts_, part) ? Passed::kYes : Passed::kNo;
}

CallReader::Passed CallReader::pass_blanks(std::string_view text, bool is_end) {
  at_ = behind_blanks(text, at_);
  return at_ < text.size() || is_end ? Passed::kYes : Passed::kMore;
}

CallReader::Passed CallReader::pass_mark(const GrammarStep& step, std::string_view text, bool is_end) {
  const std::string_view rest = text.substr(at_);
  if (!rest.starts_with(step.text)) return step.text.starts_with(rest) && !is_end ? Passed::kMore : Passed::kNo;
  if (step.kind == GrammarStep::Kind::kMark) at_ += step.text.size();
  return take(step, step.text);
}

// Whether a mark of `follow` stands behind the mark at searched_.
CallReader::Passed CallReader::follows(const GrammarStep& step, std::string_view text) {
  if (step.follow.empty()) return Passed::kYes;
  n_blanks_ = behind_blanks(text, std::max(n_blanks_, searched_ + step.text.size()));
  const std::string_view rest = text.substr(n_blanks_);
  Passed result = Passed::kNo;
  for (const std::string_view mark : step.follow) {
    if (rest.starts_with(mark)) return Passed::kYes;
    if (mark.starts_with(rest)) result = Passed::kMore;
  }
  return result;
}

CallReader::Passed CallReader::pass_word(const GrammarStep& step, std::string_view text) {
  searched_ = text.find_first_of(step.text, std::max(searched_, at_));
  if (searched_ == std::string_view::npos) {
    searched_ = text.size();
    return Passed::kMore;
  }
  const Passed taken = take(step, text.substr(at_, searched_ - at_));
  if (taken == Passed::kYes) at_ = searched_;
  return taken;
}

CallReader::Passed CallReader::pass_skip(const GrammarStep& step, std::string_view text) {
  for (searched_ = std::max(searched_, at_); searched_ < text.size(); ++searched_) {
    const std::string_view rest = text.substr(searched_);
    for (const std::string_view mark : step.follow) {
      if (rest.starts_with(mark)) {
        at_ = searched_;
        return Passed::kYes;
      }
      if (mark.starts_with(rest)) return Passed::kMore;
    }
  }
  return Passed::kMore;
}

CallReader::Passed CallReader::pass_until(const GrammarStep& step, std::string_view text) {
  searched_ = std::max(searched_, at_);
  while (true) {
    const size_t found = text.find(step.text, searched_);
    if (found == std::string_view::npos) {
      const size_t n_kept = step.text.size() - 1;
      searched_ = std::max(searched_, text.size() - std::min(text.size(), n_kept));
      return Passed::kMore;
    }
    searched_ = found;
    const Passed passed = follows(step, text);
    if (passed == Passed::kMore) return passed;
    if (passed == Passed::kYes) {
      const std::string_view part = text.substr(at_, found - at_);
      const Passed taken = take(step, part);
      if (taken == Passed::kYes) at_ = found + step.text.size();
      return taken;
    }
    searched_ = found + step.text.size();
    n_blanks_ = 0;
  }
}

CallReader::Passed CallReader::pass_value(const GrammarStep& step, std::string_view text) {
  if (!scanner_) scanner_.emplace(at_);
  const State state = scanner_->scan(text, *step.notation);
  if (state == State::kMore) return Passed::kMore;
  const std::string_view value = text.substr(at_, scanner_->at() - at_);
  at_ = scanner_->at();
  return state == State::kWhole ? take(step, value) : Passed::kNo;
}

}  // namespace candor::text
