#include "apps/charts/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "apps/charts/scale.h"

namespace candor::apps {
namespace {

constexpr double kChartWidth = 880, kChartHeight = 300;
// Margins; names of lines stand in the right one.
constexpr double kChartLeft = 62, kChartRight = 250, kChartTop = 36, kChartBottom = 46;
constexpr double kNameHeight = 16;
constexpr double kHeading = 40;

bool is_seen(const Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

class ChartDrawing {
 public:
  explicit ChartDrawing(const LineChart& chart) : chart_(chart), svg_(kChartWidth, kChartHeight, chart.title) {
    for (const ChartLine& line : chart.lines) {
      for (const Point& point : line.points) {
        if (!is_seen(point)) continue;
        x_range_.take(point.x);
        y_range_.take(point.y);
      }
    }
  }

  Svg draw() {
    svg_.text({kChartLeft, 20}, chart_.title, {.is_bold = true, .size = 13});
    if (!(x_range_.low <= x_range_.high)) {
      svg_.text({kChartLeft, kChartHeight / 2}, "nothing was measured", {.ink = Ink::kQuiet});
      return svg_;
    }
    scale_y();
    scale_x();
    for (const ChartLine& line : chart_.lines) draw(line);
    name_lines();
    return svg_;
  }

 private:
  void scale_y() {
    const bool is_log = y_range_.low > 0 && y_range_.high / y_range_.low >= kLogSpread;
    const RoundScale round = is_log ? log_scale(y_range_.low, y_range_.high) : linear_scale(0, y_range_.high);
    y_ = {round.low, round.high, kChartHeight - kChartBottom, kChartTop, is_log};
    for (const double value : round.names) {
      const double y = y_.place(value);
      svg_.line({kChartLeft, y}, {kChartWidth - kChartRight, y}, Ink::kGrid);
      svg_.text({kChartLeft - 8, y + 4}, short_number(value), {.anchor = Anchor::kEnd, .ink = Ink::kQuiet});
    }
    if (is_log) svg_.text({kChartWidth - kChartRight, 20}, "logarithmic", {.anchor = Anchor::kEnd, .ink = Ink::kQuiet});
  }

  void scale_x() {
    const bool is_named = !chart_.x_names.empty();
    const bool is_log = is_named && x_range_.low > 0 && x_range_.high / x_range_.low >= kLogNames;
    const RoundScale round = linear_scale(x_range_.low, x_range_.high);
    x_ = {is_named ? x_range_.low : round.low, is_named ? x_range_.high : round.high, kChartLeft,
          kChartWidth - kChartRight, is_log};
    if (x_.high <= x_.low) x_ = {x_.low - 1, x_.low + 1, kChartLeft, kChartWidth - kChartRight, false};
    constexpr double kLeastGap = 44;
    double last = -kLeastGap;
    for (const double value : is_named ? chart_.x_names : round.names) {
      const double x = x_.place(value);
      if (x - last < kLeastGap) continue;
      last = x;
      svg_.text({x, kChartHeight - kChartBottom + 18}, short_number(value),
                {.anchor = Anchor::kMiddle, .ink = Ink::kQuiet});
    }
    svg_.text({(kChartLeft + kChartWidth - kChartRight) / 2, kChartHeight - 8}, chart_.x_label,
              {.anchor = Anchor::kMiddle, .ink = Ink::kQuiet});
  }

  Point place(const Point& point) const { return {x_.place(point.x), y_.place(point.y)}; }

  void draw(const ChartLine& line) {
    std::string d;
    for (const Point& point : line.points) {
      if (!is_seen(point)) continue;
      const Point at = place(point);
      d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", at.x, at.y);
      if (line.has_marks) svg_.dot(at, line.ink);
    }
    const bool is_level = line.points.size() == 1 && !line.has_marks;
    if (is_level)
      d = fmt::format("M{:g} {:.1f}L{:g} {:.1f}", kChartLeft, place(line.points[0]).y, kChartWidth - kChartRight,
                      place(line.points[0]).y);
    if (!d.empty()) svg_.path(d, line.ink, line.stroke);
  }

  // At the ends of the lines, as near as they do not overlap.
  void name_lines() {
    struct Name {
      const ChartLine* line;
      double end_y, y;
    };
    std::vector<Name> names;
    for (const ChartLine& line : chart_.lines) {
      const auto last = std::find_if(line.points.rbegin(), line.points.rend(), is_seen);
      if (last != line.points.rend()) names.push_back({&line, place(*last).y, place(*last).y});
    }
    std::ranges::stable_sort(names, {}, &Name::end_y);
    for (size_t i = 1; i < names.size(); ++i) names[i].y = std::max(names[i].y, names[i - 1].y + kNameHeight);
    double floor_y = kChartHeight - kChartBottom + 4;
    for (size_t i = names.size(); i-- > 0; floor_y = names[i].y - kNameHeight)
      names[i].y = std::min(names[i].y, floor_y);
    constexpr double kGap = 10, kSample = 26;
    for (const Name& name : names) {
      const double x = kChartWidth - kChartRight + kGap;
      svg_.line({x, name.y}, {x + kSample, name.y}, name.line->ink, name.line->stroke, 2);
      if (name.line->has_marks) svg_.dot({x + kSample / 2, name.y}, name.line->ink);
      svg_.text({x + kSample + 6, name.y + 4}, name.line->name);
    }
  }

  const LineChart& chart_;
  Svg svg_;
  Range x_range_, y_range_;
  Scale x_, y_;
};

}  // namespace

Svg draw(const LineChart& chart) {
  return ChartDrawing(chart).draw();
}

Svg stack(const std::string& heading, const std::vector<Svg>& pictures) {
  double width = kChartWidth, height = kHeading;
  for (const Svg& picture : pictures) {
    width = std::max(width, picture.width());
    height += picture.height();
  }
  Svg all(width, height, heading);
  all.text({16, 26}, heading, {.size = 15});
  double y = kHeading;
  for (const Svg& picture : pictures) {
    all.place(picture, y);
    y += picture.height();
  }
  return all;
}

}  // namespace candor::apps
