#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace candor::text {
namespace {

struct Outcome {
  std::string text;
  std::optional<size_t> hit;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& parts) {
  StopStrings search(stops);
  Outcome outcome;
  for (const std::string& part : parts) {
    const StopResult result = search.push(part);
    outcome.text += result.text;
    outcome.hit = result.hit;
    if (result.hit) return outcome;
  }
  outcome.text += search.finish();
  return outcome;
}

TEST(stop_strings, a_stop_string_over_several_pushes_never_leaks) {
  EXPECT_EQ(run({"</end>"}, {"abc<", "/e", "nd", ">def"}), (Outcome{"abc", 0}));
  EXPECT_EQ(run({"</end>"}, {"abc<", "/e", "xd"}), (Outcome{"abc</exd", std::nullopt}));
}

TEST(stop_strings, text_that_cannot_begin_a_stop_string_is_shown_at_once) {
  StopStrings search({"\n\n"});
  EXPECT_EQ(search.push("ab").text, "ab");
  EXPECT_EQ(search.push("c\n").text, "c");
  EXPECT_EQ(search.push("d").text, "\nd");
  EXPECT_EQ(search.finish(), "");
}

TEST(stop_strings, the_hit_that_starts_first_wins) {
  EXPECT_EQ(run({"bc", "abcd"}, {"xabc", "d"}), (Outcome{"x", 1}));
  EXPECT_EQ(run({"bc", "abcd"}, {"xabc", "e"}), (Outcome{"xa", 0}));
  EXPECT_EQ(run({"bc", "abcd"}, {"xabc"}), (Outcome{"xa", std::nullopt}));
  EXPECT_EQ(run({"\n\n", "\n"}, {"a\n\n"}), (Outcome{"a", 1}));
}

TEST(stop_strings, a_stop_string_is_found_over_code_points_cut_apart_by_its_caller) {
  EXPECT_EQ(run({"\u00E9\U0001F600"}, {"x\u00E9", "\U0001F600y"}), (Outcome{"x", 0}));
}

TEST(stop_strings, no_stop_strings_pass_everything) {
  EXPECT_EQ(run({}, {"a", "b"}), (Outcome{"ab", std::nullopt}));
}

TEST(stop_strings, nothing_follows_a_hit) {
  StopStrings search({"s"});
  EXPECT_EQ(search.push("as").hit, std::optional<size_t>(0));
  EXPECT_EQ(search.push("more").text, "");
  EXPECT_EQ(search.finish(), "");
}

// By definition: the earliest start, and of equal starts the shortest.
Outcome expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t begin = 0; begin < text.size(); ++begin) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      if (text.compare(begin, stops[i].size(), stops[i]) != 0) continue;
      if (!best || stops[i].size() < stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, begin), best};
  }
  return {text, std::nullopt};
}

TEST(stop_strings, every_way_to_cut_a_text_gives_the_same) {
  std::mt19937 random(23);
  const auto random_text = [&](size_t n) {
    std::string text(n, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0, n = random() % 4; i < n; ++i) stops.push_back(random_text(1 + random() % 6));
    const std::string text = random_text(random() % 30);
    std::vector<std::string> parts;
    for (size_t at = 0; at < text.size();) {
      const size_t n = 1 + random() % 5;
      parts.push_back(text.substr(at, n));
      at += n;
    }
    Outcome got = run(stops, parts);
    const Outcome want = expected(stops, text);
    EXPECT_EQ(got.text, want.text) << text;
    EXPECT_TRUE(!got.hit || got.hit == want.hit) << text;
  }
}

}  // namespace
}  // namespace candor::text
