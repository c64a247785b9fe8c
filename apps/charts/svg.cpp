#include "apps/charts/svg.h"

#include <fmt/format.h>

#include <array>

namespace candor::apps {
namespace {

struct Colour {
  const char* light;
  const char* dark;
};
constexpr std::array<Colour, kInks> kColours = {{{"#1b1f24", "#e6e8eb"},
                                                 {"#57606a", "#a4adb8"},
                                                 {"#dfe3e8", "#30363d"},
                                                 {"#ffffff", "#15181c"},
                                                 {"#1f5fa8", "#79b0f2"},
                                                 {"#c04a18", "#f2955f"},
                                                 {"#2a7d45", "#6fce8d"},
                                                 {"#77449c", "#c69be8"},
                                                 {"#8a6508", "#e0bd5c"},
                                                 {"#2f6470", "#79c3d0"}}};
constexpr size_t kFirstColoured = static_cast<size_t>(Ink::kBlue);
constexpr std::array kDashes = {"", "7 5", "2 4", "9 4 2 4", "14 5"};
constexpr std::array kAnchors = {"start", "middle", "end"};

const Colour& colour_of(Ink ink) {
  return kColours[static_cast<size_t>(ink)];
}

std::string dash_of(Stroke stroke) {
  if (stroke == Stroke::kSolid) return {};
  return fmt::format(" stroke-dasharray=\"{}\"", kDashes[static_cast<size_t>(stroke)]);
}

std::string dark_rules() {
  std::string rules;
  for (size_t i = 0; i < kColours.size(); ++i)
    rules += fmt::format(".s{0}{{stroke:{1}}}.f{0}{{fill:{1}}}", i, kColours[i].dark);
  return fmt::format("<style>@media (prefers-color-scheme: dark){{{}}}</style>\n", rules);
}

}  // namespace

Ink ink_of(size_t index) {
  return static_cast<Ink>(kFirstColoured + index % (kInks - kFirstColoured));
}

std::string escaped_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view alt) : width_(width), height_(height), alt_(alt) {}

void Svg::text(Point at, std::string_view words, const TextStyle& style) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"f{}\" fill=\"{}\"", at.x, at.y,
                       static_cast<int>(style.ink), colour_of(style.ink).light);
  if (style.anchor != Anchor::kStart)
    body_ += fmt::format(" text-anchor=\"{}\"", kAnchors[static_cast<size_t>(style.anchor)]);
  if (style.is_bold) body_ += " font-weight=\"bold\"";
  if (style.size != 12) body_ += fmt::format(" font-size=\"{}\"", style.size);
  body_ += fmt::format(">{}</text>\n", escaped_xml(words));
}

void Svg::line(Point from, Point to, Ink ink, Stroke stroke, double width) {
  path(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", from.x, from.y, to.x, to.y), ink, stroke, width);
}

void Svg::path(std::string_view d, Ink ink, Stroke stroke, double width) {
  body_ += fmt::format("<path d=\"{}\" fill=\"none\" class=\"s{}\" stroke=\"{}\" stroke-width=\"{:g}\"{}/>\n", d,
                       static_cast<int>(ink), colour_of(ink).light, width, dash_of(stroke));
}

void Svg::box(Point corner, Point size, Ink ink) {
  body_ +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\" class=\"f{}\" fill=\"{}\"/>\n",
                  corner.x, corner.y, size.x, size.y, static_cast<int>(ink), colour_of(ink).light);
}

void Svg::dot(Point at, Ink ink, double radius) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\" class=\"f{}\" fill=\"{}\"/>\n", at.x, at.y,
                       radius, static_cast<int>(ink), colour_of(ink).light);
}

void Svg::place(const Svg& other, double y) {
  body_ += fmt::format("<g transform=\"translate(0 {:.1f})\">\n{}</g>\n", y, other.body_);
}

std::string Svg::document() const {
  const int paper = static_cast<int>(Ink::kPaper);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 {0:g} {1:g}\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{2}\">\n{3}"
      "<rect width=\"100%\" height=\"100%\" class=\"f{4}\" fill=\"{5}\"/>\n{6}</svg>\n",
      width_, height_, escaped_xml(alt_), dark_rules(), paper, colour_of(Ink::kPaper).light, body_);
}

}  // namespace candor::apps
