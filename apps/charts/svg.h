#pragma once
// A picture of lines, boxes and words as one SVG document. Colours are named, each with a light and a dark form: the
// picture follows the reader's theme, and is light where a viewer knows none.

#include <cstdint>
#include <string>
#include <string_view>

namespace candor::apps {

enum class Ink : uint8_t { kWords, kQuiet, kGrid, kPaper, kBlue, kOrange, kGreen, kViolet, kOchre, kTeal };
inline constexpr int kInks = 10;
// One of the coloured ones, in turn.
Ink ink_of(size_t index);

enum class Stroke : uint8_t { kSolid, kDashed, kDotted, kDashDot, kLongDash };

enum class Anchor : uint8_t { kStart, kMiddle, kEnd };

struct TextStyle {
  Anchor anchor = Anchor::kStart;
  Ink ink = Ink::kWords;
  bool is_bold = false;
  int size = 12;
};

struct Point {
  double x = 0, y = 0;
};

// For text between tags, and in attributes.
std::string escaped_xml(std::string_view text);

class Svg {
 public:
  // alt: what it shows, for who cannot see it.
  Svg(double width, double height, std::string_view alt);

  void text(Point at, std::string_view words, const TextStyle& style = {});
  void line(Point from, Point to, Ink ink, Stroke stroke = Stroke::kSolid, double width = 1);
  // d: a path's commands.
  void path(std::string_view d, Ink ink, Stroke stroke = Stroke::kSolid, double width = 2);
  void box(Point corner, Point size, Ink ink);
  void dot(Point at, Ink ink, double radius = 3);
  // What was drawn so far by another picture's body, moved down.
  void place(const Svg& other, double y);

  double width() const { return width_; }
  double height() const { return height_; }
  std::string document() const;

 private:
  double width_, height_;
  std::string alt_;
  std::string body_;
};

}  // namespace candor::apps
