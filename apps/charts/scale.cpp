#include "apps/charts/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace candor::apps {
namespace {

// 1, 2 or 5 times a power of ten, so that at most six steps span it.
double nice_step(double span) {
  const double rough = std::max(span, 1e-9) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

}  // namespace

double Scale::place(double value) const {
  const double share = is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return begin + (end - begin) * share;
}

RoundScale linear_scale(double low, double high) {
  const double step = nice_step(high - low);
  const double first = std::floor(low / step), last = std::max(first + 1, std::ceil(high / step * 0.9999));
  RoundScale scale{first * step, last * step, {}};
  for (double i = first; i <= last; ++i) scale.names.push_back(i * step);
  return scale;
}

RoundScale log_scale(double low, double high) {
  const double n_decades = std::log10(high / low);
  std::vector<double> factors = {1};
  if (n_decades < 3) factors = {1, 2, 5};
  RoundScale scale;
  for (int power = static_cast<int>(std::floor(std::log10(low)));
       power <= static_cast<int>(std::ceil(std::log10(high))); ++power) {
    for (const double factor : factors) scale.names.push_back(factor * std::pow(10, power));
  }
  // From the last name at or below low to the first at or above high.
  const auto above = [&](double value) { return value > low * 1.0001; };
  const auto first = std::ranges::find_if(scale.names, above);
  scale.names.erase(scale.names.begin(), first == scale.names.begin() ? first : first - 1);
  const auto last = std::ranges::find_if(scale.names, [&](double value) { return value >= high * 0.9999; });
  if (last != scale.names.end()) scale.names.erase(last + 1, scale.names.end());
  scale.low = scale.names.front();
  scale.high = std::max(scale.names.back(), scale.low * 2);
  const size_t stride = (scale.names.size() + 7) / 8;
  for (size_t i = scale.names.size(); i-- > 0;)
    if (i % stride != 0) scale.names.erase(scale.names.begin() + static_cast<std::ptrdiff_t>(i));
  return scale;
}

std::string short_number(double value) {
  if (std::abs(value) >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (std::abs(value) >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

}  // namespace candor::apps
