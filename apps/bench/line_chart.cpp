#include "apps/bench/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace candor::apps {
namespace {

constexpr double kWidth = 760, kHeight = 280;                        // of a chart
constexpr double kLeft = 70, kRight = 200, kTop = 34, kBottom = 44;  // its margins
constexpr double kHeading = 40;
constexpr std::array kColours = {"#1f5fa8", "#c8501e", "#2f8a4c", "#7b4aa0", "#a07a12", "#4a6a72"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// 1, 2 or 5 times a power of ten, so that at most six steps reach the top.
double nice_step(double top) {
  const double rough = std::max(top, 1e-9) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

class Panel {
 public:
  Panel(const LineChart& chart, double y) : chart_(chart), y_(y) {
    double top = 0;
    for (const ChartLine& line : chart.lines)
      for (const double value : line.values)
        if (std::isfinite(value)) top = std::max(top, value);
    step_ = nice_step(top);
    top_ = step_ * std::max(1.0, std::ceil(top / step_));
  }

  std::string draw() const {
    std::string out =
        fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", kLeft, y_ + 20, escaped(chart_.title));
    out += grid();
    for (size_t i = 0; i < chart_.lines.size(); ++i) out += draw(chart_.lines[i], i);
    return out;
  }

 private:
  double x_of(size_t category) const {
    const double n = static_cast<double>(std::max<size_t>(chart_.categories.size(), 2) - 1);
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(category) / n;
  }
  double y_of(double value) const { return y_ + kTop + (kHeight - kTop - kBottom) * (1 - value / top_); }

  std::string grid() const {
    std::string out;
    for (double value = 0; value <= top_ * 1.001; value += step_) {
      out += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
          kLeft, kWidth - kRight, y_of(value), kLeft - 8, y_of(value) + 4, value);
    }
    for (size_t i = 0; i < chart_.categories.size(); ++i)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x_of(i), y_of(0) + 18,
                         escaped(chart_.categories[i]));
    return out + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#555\">{}</text>\n",
                             (kLeft + kWidth - kRight) / 2, y_of(0) + 36, escaped(chart_.x_label));
  }

  std::string draw(const ChartLine& line, size_t index) const {
    const std::string colour = line.dashed ? "#999" : kColours[index % kColours.size()];
    const char* dash = line.dashed ? " stroke-dasharray=\"5 4\"" : "";
    std::string path, marks;
    for (size_t i = 0; i < line.values.size(); ++i) {
      if (!std::isfinite(line.values[i])) continue;
      path += fmt::format("{}{:.1f} {:.1f} ", path.empty() ? "M" : "L", x_of(i), y_of(line.values[i]));
      if (!line.dashed)
        marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x_of(i), y_of(line.values[i]),
                             colour);
    }
    const double legend_y = y_ + kTop + 10 + 18 * static_cast<double>(index);
    const double legend_x = kWidth - kRight + 24;
    return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>{}\n", path, colour, dash,
                       marks) +
           fmt::format(
               "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"2\"{4}/>"
               "<text x=\"{5}\" y=\"{6}\">{7}</text>\n",
               legend_x, legend_x + 22, legend_y, colour, dash, legend_x + 28, legend_y + 4, escaped(line.name));
  }

  const LineChart& chart_;
  double y_;
  double step_ = 1, top_ = 1;
};

}  // namespace

std::string to_svg(const std::string& heading, const std::vector<LineChart>& charts) {
  const double height = kHeading + kHeight * static_cast<double>(charts.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"26\" font-size=\"15\">{3}</text>\n",
      kWidth, height, kLeft, escaped(heading));
  for (size_t i = 0; i < charts.size(); ++i)
    out += Panel(charts[i], kHeading + kHeight * static_cast<double>(i)).draw();
  return out + "</svg>\n";
}

}  // namespace candor::apps
