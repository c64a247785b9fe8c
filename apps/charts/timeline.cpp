#include "apps/charts/timeline.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "apps/charts/scale.h"

namespace candor::apps {
namespace {

constexpr double kTimelineWidth = 880, kTimelineLeft = 62, kTimelineRight = 24, kTimelineTop = 62, kTimelineBottom = 46;
constexpr double kMostHeight = 640;  // of all rows
constexpr double kMostRow = 16, kLeastRow = 1, kLeastForTicks = 6;

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const Timeline& timeline)
      : timeline_(timeline),
        row_height_(std::clamp(kMostHeight / static_cast<double>(std::max<size_t>(1, timeline.rows.size())), kLeastRow,
                               kMostRow)),
        bottom_(kTimelineTop + row_height_ * static_cast<double>(timeline.rows.size())),
        svg_(kTimelineWidth, bottom_ + kTimelineBottom, timeline.title) {}

  Svg draw() {
    svg_.text({kTimelineLeft, 20}, timeline_.title, {.is_bold = true, .size = 13});
    legend();
    scale();
    for (size_t i = 0; i < timeline_.rows.size(); ++i)
      draw(timeline_.rows[i], kTimelineTop + row_height_ * static_cast<double>(i));
    return svg_;
  }

 private:
  void legend() {
    std::vector<std::pair<const char*, Ink>> parts = {{"waits", Ink::kOchre}, {"reads its prompt", Ink::kOrange},
                                                      {"decodes", Ink::kBlue}, {"did not end well", Ink::kViolet}};
    if (!timeline_.knows_queue) parts = {{"until the first token", Ink::kOrange}, parts[2], parts[3]};
    double x = kTimelineLeft;
    for (const auto& [words, ink] : parts) {
      svg_.box({x, 34}, {14, 10}, ink);
      svg_.text({x + 20, 43}, words);
      x += 150;
    }
  }

  void scale() {
    double end = 0;
    for (const TimelineRow& row : timeline_.rows) end = std::max(end, row.end);
    const RoundScale round = linear_scale(0, std::max(end, 1e-3));
    x_ = {0, round.high, kTimelineLeft, kTimelineWidth - kTimelineRight, false};
    for (const double value : round.names) {
      const double x = x_.place(value);
      svg_.line({x, kTimelineTop - 4}, {x, bottom_ + 4}, Ink::kGrid);
      svg_.text({x, bottom_ + 18}, short_number(value), {.anchor = Anchor::kMiddle, .ink = Ink::kQuiet});
    }
    svg_.text({(kTimelineLeft + kTimelineWidth - kTimelineRight) / 2, bottom_ + 38}, "seconds",
              {.anchor = Anchor::kMiddle, .ink = Ink::kQuiet});
    const size_t n = timeline_.rows.size();
    const auto name = [&](size_t i) {
      svg_.text({kTimelineLeft - 8, kTimelineTop + row_height_ * (static_cast<double>(i) + 0.5) + 4},
                std::to_string(i + 1), {.anchor = Anchor::kEnd, .ink = Ink::kQuiet});
    };
    if (n > 0) name(0);
    if (n > 1) name(n - 1);
  }

  void bar(double begin, double end, double y, Ink ink) {
    const double x = x_.place(begin), gap = row_height_ > 4 ? 2 : 0;
    if (end > begin) svg_.box({x, y}, {std::max(0.5, x_.place(end) - x), row_height_ - gap}, ink);
  }

  void draw(const TimelineRow& row, double y) {
    if (!row.is_done) return bar(row.arrived, std::max(row.end, row.arrived + x_.high / 500), y, Ink::kViolet);
    bar(row.arrived, row.started, y, Ink::kOchre);
    bar(row.started, row.first_token, y, Ink::kOrange);
    bar(row.first_token, row.end, y, Ink::kBlue);
    constexpr size_t kMostTicks = 400;
    if (row_height_ < kLeastForTicks || row.tokens.size() > kMostTicks) return;
    constexpr double kLeastGap = 3;
    double last = -kLeastGap;
    for (const double token : row.tokens) {
      const double x = x_.place(token);
      if (x - last < kLeastGap) continue;
      last = x;
      svg_.line({x, y + 2}, {x, y + row_height_ - 4}, Ink::kPaper, Stroke::kSolid, 0.6);
    }
  }

  const Timeline& timeline_;
  const double row_height_, bottom_;
  Svg svg_;
  Scale x_;
};

}  // namespace

Svg draw(const Timeline& timeline) {
  return TimelineDrawing(timeline).draw();
}

}  // namespace candor::apps
