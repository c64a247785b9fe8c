#pragma once
// Small line charts as SVG, for people: categories along x, values from zero along y, a legend at the right.

#include <string>
#include <vector>

namespace candor::apps {

struct ChartLine {
  std::string name;
  std::vector<double> values;  // one for each category; NaN leaves a gap
  bool dashed = false;         // a limit rather than a measurement
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::vector<std::string> categories;
  std::vector<ChartLine> lines;
};

// The charts below one another under a heading, as one SVG document. Light background, readable in print.
std::string to_svg(const std::string& heading, const std::vector<LineChart>& charts);

}  // namespace candor::apps
