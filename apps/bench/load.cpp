#include "apps/bench/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "base/philox.h"

namespace candor::apps {
namespace {

constexpr uint32_t kGapWords = 0xFFFFFFFF;     // the choice whose words are gaps
constexpr uint32_t kSharedWords = 0xFFFFFFFE;  // and the one whose words are the shared beginning
constexpr int32_t kMaxTokens = 1 << 24;

template <class Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// "2023-11-16 18:15:46.6805900" in seconds of some epoch.
bool read_time(std::string_view text, double& seconds) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':') {
    return false;
  }
  if (!read_number(text.substr(0, 4), year) || !read_number(text.substr(5, 2), month) ||
      !read_number(text.substr(8, 2), day) || !read_number(text.substr(11, 2), hour) ||
      !read_number(text.substr(14, 2), minute) || !read_number(text.substr(17), second)) {
    return false;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  seconds = static_cast<double>(days) * 86400.0 + hour * 3600.0 + minute * 60.0 + second;
  return true;
}

bool read_line(std::string_view line, LoadRequest& request) {
  const size_t first = line.find(',');
  const size_t second = line.find(',', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return false;
  return read_time(line.substr(0, first), request.at_s) &&
         read_number(line.substr(first + 1, second - first - 1), request.n_prompt) &&
         read_number(line.substr(second + 1), request.n_new) && request.n_prompt > 0 && request.n_prompt < kMaxTokens &&
         request.n_new > 0 && request.n_new < kMaxTokens;
}

Result<std::vector<LoadRequest>> read_trace(const LoadSpec& spec) {
  std::ifstream file(*spec.trace);
  if (!file) return fail(ErrorKind::kNotFound, fmt::format("{} cannot be read", spec.trace->string()));
  std::vector<LoadRequest> requests;
  std::string line;
  std::getline(file, line);
  for (int64_t number = 2; std::getline(file, line) && static_cast<int64_t>(requests.size()) < spec.n_requests;
       ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    LoadRequest request;
    if (!read_line(line, request)) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}, line {}: \"{:.60}\", expected TIMESTAMP,ContextTokens,GeneratedTokens",
                              spec.trace->string(), number, line));
    }
    requests.push_back(request);
  }
  if (requests.empty()) return fail(ErrorKind::kInvalidInput, fmt::format("{} has no request", spec.trace->string()));
  std::ranges::sort(requests, {}, &LoadRequest::at_s);
  return requests;
}

// Gaps of a Poisson process, before scaling.
std::vector<LoadRequest> make_up(const LoadSpec& spec) {
  std::vector<LoadRequest> requests;
  double at_s = 0;
  for (int64_t i = 0; i < spec.n_requests; ++i) {
    requests.push_back({at_s, spec.n_prompt, spec.n_new});
    if ((i + 1) % spec.n_burst != 0) continue;
    const float unit = unit_float(random_words(spec.seed, kGapWords, static_cast<uint64_t>(i))[0]);
    at_s -= std::log1p(-static_cast<double>(unit));
  }
  return requests;
}

}  // namespace

Result<Load> make_load(const LoadSpec& spec) {
  Load load;
  if (spec.trace) {
    CANDOR_ASSIGN(load.requests, read_trace(spec));
  } else {
    load.requests = make_up(spec);
  }
  const double begin_s = load.requests.front().at_s;
  const double length_s = load.requests.back().at_s - begin_s;
  double scale = spec.trace ? 1.0 : 0.0;
  if (spec.requests_per_s > 0 && length_s > 0)
    scale = static_cast<double>(load.requests.size() - 1) / spec.requests_per_s / length_s;
  for (LoadRequest& request : load.requests) {
    request.at_s = (request.at_s - begin_s) * scale;
    const int32_t n_new = std::min(request.n_new, spec.n_ctx / 2);
    const int32_t n_prompt = std::min(request.n_prompt, spec.n_ctx - n_new);
    if (n_new < request.n_new || n_prompt < request.n_prompt) ++load.n_cut;
    request.n_new = n_new;
    request.n_prompt = n_prompt;
  }
  return load;
}

TokenPrompt make_prompt(int32_t n_tokens, int32_t n_shared, int32_t n_vocab, uint64_t seed, uint32_t index) {
  TokenPrompt tokens;
  for (int32_t i = 0; i < n_tokens; ++i) {
    const uint32_t stream = i < n_shared ? kSharedWords : index;
    const uint32_t word = random_words(seed, stream, static_cast<uint64_t>(i))[0];
    tokens.push_back(static_cast<TokenId>(word % static_cast<uint32_t>(n_vocab)));
  }
  return tokens;
}

}  // namespace candor::apps
