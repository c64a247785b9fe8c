// The one table of sampling's numbers: its rows make sense, and the page for people says the same.

#include "candor/sampling_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "support/shared_data.h"

namespace candor {
namespace {

// As docs/server.md shows it.
std::string page_row(const SamplingNumber& number) {
  std::string option(number.name);
  std::ranges::replace(option, '_', '-');
  const auto second = [](std::string_view name) { return name.empty() ? "" : fmt::format(", `{}`", name); };
  std::string range = fmt::format("{:.10g} to {:.10g}", number.least, number.most);
  if (number.api_least != number.least || number.api_most != number.most) {
    range += fmt::format("; server: {:.10g} to {:.10g}", number.api_least, number.api_most);
  }
  if (!number.note.empty()) range += fmt::format(" ({})", number.note);
  return fmt::format("| `{}`{} | `--{}`{} | {} | {:.10g} | {} |\n", number.name, second(number.other_field), option,
                     second(number.other_option), range, value_of(number, {}), number.help);
}

TEST(sampling_table, every_default_is_in_its_range_and_every_name_stands_once) {
  std::set<std::string_view> names;
  for (const SamplingNumber& number : kSamplingNumbers) {
    const double value = value_of(number, {});
    EXPECT_GE(value, number.least) << number.name;
    EXPECT_LE(value, number.most) << number.name;
    EXPECT_LE(number.api_most, number.most) << number.name;
    EXPECT_FALSE(number.help.empty()) << number.name;
    EXPECT_EQ(find_sampling_number(number.name), &number);
    EXPECT_TRUE(names.insert(number.name).second) << number.name;
    if (number.other_field.empty()) continue;
    EXPECT_TRUE(names.insert(number.other_field).second) << number.other_field;
  }
  EXPECT_EQ(find_sampling_number("top_q"), nullptr);
}

TEST(sampling_table, the_page_of_the_server_shows_the_table) {
  std::ifstream file(testing::project_file("docs/server.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::string rows;
  for (const SamplingNumber& number : kSamplingNumbers) rows += page_row(number);
  EXPECT_NE(page.find("|---|---|---|---|---|\n" + rows + "\n"), std::string::npos) << "expected there:\n" << rows;
}

}  // namespace
}  // namespace candor
