#pragma once
// Numbers along an axis: where they lie, and which of them are named.

#include <string>
#include <vector>

namespace candor::apps {

struct Scale {
  double low = 0, high = 1;      // values at the ends
  double begin = 0, end = 1;     // their places
  bool is_log = false;

  double place(double value) const;
};

// Round numbers that reach beyond both ends, at most seven or so.
struct RoundScale {
  double low = 0, high = 1;
  std::vector<double> names;
};
RoundScale linear_scale(double low, double high);
// REQUIRES: low > 0.
RoundScale log_scale(double low, double high);

// "0.05", "512", "20k", "1.5M"
std::string short_number(double value);

}  // namespace candor::apps
