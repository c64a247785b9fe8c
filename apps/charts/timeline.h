#pragma once
// Requests over time: a row for each, from its arrival to its last token, and how many of its parts took how long.

#include <string>
#include <vector>

#include "apps/charts/svg.h"

namespace candor::apps {

// Seconds since the beginning.
struct TimelineRow {
  double arrived = 0;
  double started = 0;      // its first row was computed; as arrived where nobody knows
  double first_token = 0;  // as end where there was none
  double end = 0;
  std::vector<double> tokens = {};
  bool is_done = true;  // false: refused, failed or cut off
};

struct Timeline {
  std::string title;
  bool knows_queue = true;
  std::vector<TimelineRow> rows;
};

Svg draw(const Timeline& timeline);

}  // namespace candor::apps
