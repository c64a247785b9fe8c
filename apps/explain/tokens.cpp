#include "apps/explain/tokens.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/explain/stages.h"
#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

const StageView::Candidate* find(const StageView& stage, TokenId token) {
  const auto it = std::ranges::find(stage.best, token, &StageView::Candidate::token);
  return it == stage.best.end() ? nullptr : &*it;
}

class Tokens {
 public:
  Tokens(const Engine& engine, const TokenPage& page)
      : engine_(engine),
        page_(page),
        name_([this](TokenId token) { return printable(engine_.piece(token)); }) {}

  std::string text(std::span<const TokenEvent> events) {
    if (page_.level == Level::kBrief) brief_head(events);
    for (const TokenEvent& event : events) {
      if (!event.explanation) continue;
      n_shown_ = event.choice == choice_ ? n_shown_ + 1 : page_.first;
      choice_ = event.choice;
      page_.level == Level::kBrief ? show_line(event, *event.explanation) : show_whole(event, *event.explanation);
    }
    return std::move(out_);
  }

 private:
  void heading(int step, std::string_view title) { out_ += style_.bold(fmt::format("{} {}", step, title)) + "\n"; }

  std::string column(TokenId token, bool is_chosen) const {
    const std::string shown = fitted(name_(token), kTokenColumns);
    return padded(is_chosen ? style_.green(shown) : shown, kTokenColumns, shown);
  }

  void brief_head(std::span<const TokenEvent> events) {
    if (events.empty()) return;
    const bool is_searched = std::ranges::any_of(
        events, [](const TokenEvent& event) { return event.explanation && event.explanation->beam_option; });
    out_ += style_.dim(is_searched ? fmt::format("  {:>4} {:<16} {:>5} {:>9}\n", "", "token", "text", "score")
                                   : fmt::format("  {:>4} {:<16} {:>6} {:>6} {:>7} {:>8}  {}\n", "", "token", "model",
                                                 "p", "of", "draw", "others"));
  }

  // What the model gave it, and what it had in the end, among how many.
  void show_line(const TokenEvent& event, const TokenExplanation& explanation) {
    out_ += fmt::format("  {:>4} {} ", n_shown_, column(event.token, true));
    if (explanation.beam_option) {
      const BeamOption& option = explanation.beam_options[*explanation.beam_option];
      out_ += fmt::format("{:>5} {:>9.4f}\n", option.parent + 1, option.score);
      return;
    }
    const StageView& last = explanation.stages.back();
    std::string others;
    for (const StageView::Candidate& c : last.best) {
      if (c.token == event.token) continue;
      const std::string next = fmt::format("{}{} {:.3f}", others.empty() ? "" : ", ", name_(c.token), c.probability);
      if (columns_of(others) + columns_of(next) > 26) break;
      others += next;
    }
    const StageView::Candidate* chosen = find(last, event.token);
    const std::string of_model =
        event.logprob ? fmt::format("{:.3f}", std::exp(static_cast<double>(event.logprob->logprob))) : "-";
    out_ += fmt::format("{:>6} {:>6} {:>7} {:>8}{}\n", of_model,
                        chosen == nullptr ? "-" : fmt::format("{:.3f}", chosen->probability), format_count(last.n_left),
                        explanation.was_drawn ? fmt::format("{:.4f}", explanation.draw) : "best",
                        others.empty() ? "" : "  " + style_.dim(others));
  }

  void show_whole(const TokenEvent& event, const TokenExplanation& explanation) {
    const std::string answer = explanation.beam_option ? fmt::format("answer {}, ", choice_ + 1) : "";
    const int64_t n_logits = explanation.stages.empty() ? 0 : explanation.stages.front().n_left;
    heading(6, fmt::format("{}token {}: from {} logits to one", answer, n_shown_, format_count(n_logits)));
    out_ += stages_text(explanation.stages, event.token, {name_, page_.sampling}, style_);
    heading(7, "the choice");
    explanation.beam_option ? show_options(explanation) : show_draw(event, explanation);
    heading(8, fmt::format("token to text: \"{}\"{}{}", printable(event.text),
                           event.finish ? fmt::format(", and the end ({})", to_string(*event.finish)) : "",
                           event.score ? fmt::format(", score {:.4f}", *event.score) : ""));
  }

  void show_draw(const TokenEvent& event, const TokenExplanation& explanation) {
    out_ += explanation.was_drawn ? fmt::format("  {:.6f} was drawn with seed {}", explanation.draw, page_.seed)
                                  : "  the best is taken";
    out_ += fmt::format(": {} {}", event.token, style_.green(name_(event.token)));
    if (explanation.draft >= 0)
      out_ += fmt::format(" (drafted {}: {})", name_(explanation.draft),
                          explanation.draft == event.token ? "accepted, so that the next row counts as well"
                                                           : "rejected");
    out_ += "\n";
  }

  // The ways on of all texts; the token's own is marked.
  void show_options(const TokenExplanation& explanation) {
    out_ += style_.dim("  text   token                     score\n");
    for (size_t i = 0; i < explanation.beam_options.size(); ++i) {
      const BeamOption& option = explanation.beam_options[i];
      const bool is_chosen = i == *explanation.beam_option;
      out_ += fmt::format("  {:>4} {:>7} {} {:>9.4f} {}\n", option.parent + 1, option.token,
                          column(option.token, is_chosen), option.score,
                          std::string(to_string(option.fate)) + (is_chosen ? " <" : ""));
    }
  }

  const Engine& engine_;
  const TokenPage& page_;
  const TokenName name_;
  int32_t choice_ = -1;  // that is being shown, and how many tokens of it
  int64_t n_shown_ = 0;
  Style style_{STDOUT_FILENO};
  std::string out_;
};

}  // namespace

std::string tokens_text(const Engine& engine, std::span<const TokenEvent> events, const TokenPage& page) {
  return Tokens(engine, page).text(events);
}

}  // namespace candor::apps
