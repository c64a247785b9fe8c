#pragma once
// Charts of lines over numbers, for people: what was measured in full strokes with marks, limits in broken ones, each
// with its name at its end. An axis is logarithmic where linear would press lines together: along y where the largest
// value is kLogSpread times the smallest, along x where points are named and the last is kLogNames times the first.

#include <string>
#include <vector>

#include "apps/charts/svg.h"

namespace candor::apps {

inline constexpr double kLogSpread = 10;
inline constexpr double kLogNames = 4;

struct ChartLine {
  std::string name;
  std::vector<Point> points;  // ascending along x
  Ink ink = Ink::kBlue;
  Stroke stroke = Stroke::kSolid;
  bool has_marks = true;
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::vector<double> x_names;  // where x is named; empty: round numbers
  std::vector<ChartLine> lines;
};

// Nothing but a note where there is no point.
Svg draw(const LineChart& chart);

// The pictures below one another under a heading.
Svg stack(const std::string& heading, const std::vector<Svg>& pictures);

}  // namespace candor::apps
