#include "apps/explain/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "candor/sampling_table.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBarWidth = 20;

std::string bar(double share) {
  return std::string(static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kBarWidth)), '#');
}

std::string times(int64_t n) {
  return n == 1 ? "once" : n == 2 ? "twice" : fmt::format("{} times", format_count(n));
}

// As far as a page shows them.
bool has_same_best(const StageView& stage, const StageView& before) {
  constexpr double kShown = 5e-4;
  return std::ranges::equal(stage.best, before.best, [](const StageView::Candidate& a, const StageView::Candidate& b) {
    return a.token == b.token && a.logit == b.logit && std::abs(a.probability - b.probability) < kShown;
  });
}

class StagesText {
 public:
  StagesText(TokenId chosen, const StageWords& words, const Style& style)
      : chosen_(chosen), words_(words), style_(style) {}

  std::string text(const std::vector<StageView>& stages) {
    for (size_t i = 0; i < stages.size(); ++i) {
      if (i > 0 && changed_nothing(stages[i], stages[i - 1])) {
        idle_ += (idle_.empty() ? "" : ", ") + stage_title(stages[i].name, words_.sampling);
        continue;
      }
      show_idle();
      const StageView* before = i > 0 ? &stages[i - 1] : nullptr;
      show_head(stages[i], before);
      const bool has_news = before == nullptr || !has_same_best(stages[i], *before);
      show_candidates(stages[i], before != nullptr ? before->n_left - stages[i].n_left : 0, has_news);
    }
    show_idle();
    return std::move(out_);
  }

 private:
  void show_idle() {
    if (!idle_.empty()) out_ += fmt::format("  {}: {}\n", style_.cyan(idle_), style_.dim("changed nothing"));
    idle_.clear();
  }

  void show_head(const StageView& stage, const StageView* before) {
    out_ += fmt::format("  {}: ", style_.cyan(stage_title(stage.name, words_.sampling)));
    if (before == nullptr) {
      out_ += fmt::format("{} candidates\n", format_count(stage.n_left));
      return;
    }
    const int64_t n_cut = before->n_left - stage.n_left;
    if (n_cut > 0) {
      out_ += fmt::format("{} left, {} cut", format_count(stage.n_left), format_count(n_cut));
      if (stage.cut_probability > 0) out_ += fmt::format(" with {:.3f} of the probability", stage.cut_probability);
    } else if (stage.name == "temperature") {
      out_ += "every logit becomes z / T";
    } else {
      out_ += fmt::format("{} {} changed{}", format_count(stage.n_changed), stage.n_changed == 1 ? "logit" : "logits",
                          has_same_best(stage, *before) ? ", the best stay" : "");
    }
    out_ += "\n";
    show_changes(stage);
  }

  void show_changes(const StageView& stage) {
    for (const StageView::Change& change : stage.changed) {
      std::string counts;
      if (change.n_in_text > 0) counts = fmt::format("text {}", times(change.n_in_text));
      if (change.n_in_output > 0) counts += fmt::format(", answer {}", times(change.n_in_output));
      const double by = static_cast<double>(change.after) - static_cast<double>(change.before);
      out_ += fmt::format("    {:>7} {} {:>9.3f} -> {:.3f} ({:+.3f}) {}\n", change.token, name(change.token),
                          change.before, change.after, by, style_.dim(counts));
    }
    const int64_t n_more = stage.n_changed - static_cast<int64_t>(stage.changed.size());
    if (n_more > 0) out_ += style_.dim(fmt::format("    and {} more logits\n", format_count(n_more)));
  }

  void show_candidates(const StageView& stage, int64_t n_cut, bool has_news) {
    if (has_news) {
      for (const StageView::Candidate& c : stage.best) show_row(c, bar(c.probability));
    }
    for (const StageView::Candidate& c : stage.lowered) show_row(c, "lowered");
    for (const StageView::Candidate& c : stage.cut) show_cut(c);
    const int64_t n_more = n_cut - static_cast<int64_t>(stage.cut.size());
    if (n_more > 0 && !stage.cut.empty())
      out_ += style_.dim(fmt::format("    {:>7} {} more cut\n", "", format_count(n_more)));
  }

  void show_row(const StageView::Candidate& c, const std::string& note) {
    out_ += fmt::format("    {:>7} {} {:>9.3f} {:>7.3f}{}{}\n", c.token, name(c.token), c.logit, c.probability,
                        note.empty() ? "" : " ", note);
  }

  void show_cut(const StageView::Candidate& c) {
    const std::string shown = fitted(words_.name(c.token), kTokenColumns);
    out_ += fmt::format("    {} {} {}\n", style_.dim(fmt::format("{:>7}", c.token)),
                        padded(style_.struck(shown), kTokenColumns, shown),
                        style_.dim(fmt::format("{:>9.3f} {:>7.3f} cut", c.logit, c.probability)));
  }

  std::string name(TokenId token) const {
    const std::string shown = fitted(words_.name(token), kTokenColumns);
    return padded(token == chosen_ ? style_.green(shown) : shown, kTokenColumns, shown);
  }

  TokenId chosen_;
  const StageWords& words_;
  const Style& style_;
  std::string idle_;
  std::string out_;
};

Json candidates_json(const std::vector<StageView::Candidate>& candidates, const TokenName& piece) {
  Json list = Json::array();
  for (const StageView::Candidate& c : candidates) {
    list.push_back(
        {{"token", c.token}, {"piece", piece(c.token)}, {"logit", c.logit}, {"probability", c.probability}});
  }
  return list;
}

Json changes_json(const StageView& stage, const TokenName& piece) {
  Json list = Json::array();
  for (const StageView::Change& change : stage.changed) {
    list.push_back({{"token", change.token},
                    {"piece", piece(change.token)},
                    {"before", change.before},
                    {"after", change.after},
                    {"n_in_text", change.n_in_text},
                    {"n_in_output", change.n_in_output}});
  }
  return list;
}

}  // namespace

std::string stages_text(const std::vector<StageView>& stages, TokenId chosen, const StageWords& words,
                        const Style& style) {
  return StagesText(chosen, words, style).text(stages);
}

Json stages_json(const std::vector<StageView>& stages, const TokenName& piece) {
  Json list = Json::array();
  int64_t n_before = stages.empty() ? 0 : stages.front().n_left;
  for (const StageView& stage : stages) {
    list.push_back({{"name", stage.name},
                    {"n_left", stage.n_left},
                    {"n_cut", n_before - stage.n_left},
                    {"cut_probability", stage.cut_probability},
                    {"best", candidates_json(stage.best, piece)},
                    {"cut", candidates_json(stage.cut, piece)},
                    {"lowered", candidates_json(stage.lowered, piece)},
                    {"changed", changes_json(stage, piece)},
                    {"n_changed", stage.n_changed}});
    n_before = stage.n_left;
  }
  return list;
}

std::string stage_title(const std::string& name, const SamplingParams& sampling) {
  const SamplingNumber* number = find_sampling_number(name);
  if (number == nullptr) return name;
  const bool varies = name == "temperature" && sampling.dynatemp_range > 0;
  return fmt::format("{} {:g}{}", name, value_of(*number, sampling),
                     varies ? fmt::format(" +- {:g}", sampling.dynatemp_range) : "");
}

bool changed_nothing(const StageView& stage, const StageView& before) {
  return stage.n_left == before.n_left && stage.n_changed == 0 && stage.cut.empty() && stage.lowered.empty() &&
         has_same_best(stage, before);
}

}  // namespace candor::apps
