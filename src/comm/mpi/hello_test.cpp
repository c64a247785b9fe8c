#include "comm/mpi/hello.h"

#include <gtest/gtest.h>

namespace candor::comm {
namespace {

std::vector<Hello> hellos_of(std::initializer_list<const char*> machines) {
  std::vector<Hello> hellos;
  for (const char* machine : machines) hellos.push_back(make_hello("serve model", machine, true));
  return hellos;
}

TEST(hello, ranks_of_one_command_and_one_version_go_together) {
  EXPECT_TRUE(check_hellos(hellos_of({"a", "a", "b"})));
  EXPECT_FALSE(this_machine().empty());
}

TEST(hello, a_rank_of_another_version_is_named) {
  auto hellos = hellos_of({"a", "a", "b"});
  hellos[2].version = {"9.9.9 numerics 1 ranks 1"};
  const auto checked = check_hellos(hellos);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("rank 2 (host "), std::string::npos) << checked.error().message;
  EXPECT_NE(checked.error().message.find("9.9.9"), std::string::npos) << checked.error().message;
}

TEST(hello, a_rank_with_other_options_is_named_with_both_command_lines) {
  auto hellos = hellos_of({"a", "a"});
  hellos[1] = make_hello("serve model --quantize q8_0", "a", true);
  const auto checked = check_hellos(hellos);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("'serve model --quantize q8_0'"), std::string::npos)
      << checked.error().message;
  EXPECT_NE(checked.error().message.find("'serve model'"), std::string::npos) << checked.error().message;
}

TEST(hello, what_differs_behind_the_beginning_of_a_command_line_counts) {
  const std::string words(1000, 'x');
  const std::vector<Hello> hellos = {make_hello(words + "a", "a", true), make_hello(words + "b", "a", true)};
  EXPECT_FALSE(check_hellos(hellos));
}

TEST(hello, what_is_no_rank_of_ours_is_refused) {
  auto hellos = hellos_of({"a", "a"});
  hellos[1] = {};
  const auto checked = check_hellos(hellos);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("rank 1 is no candor"), std::string::npos) << checked.error().message;
}

TEST(hello, ranks_of_one_machine_are_near_each_other_and_those_of_none_to_themselves) {
  const auto hellos = hellos_of({"a", "b", "a", "", ""});
  EXPECT_EQ(ranks_near(hellos, 0), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(ranks_near(hellos, 1), (std::vector<int32_t>{1}));
  EXPECT_EQ(ranks_near(hellos, 3), (std::vector<int32_t>{3}));
  EXPECT_EQ(count_beside(hellos, 0), 2);
  EXPECT_EQ(count_beside(hellos, 3), 1);
  EXPECT_EQ(count_before(hellos, 0), 0);
  EXPECT_EQ(count_before(hellos, 1), 0);
  EXPECT_EQ(count_before(hellos, 2), 1);
  EXPECT_EQ(count_before(hellos, 4), 0);
}

TEST(hello, who_shares_no_memory_stands_beside_others_and_is_not_near_them) {
  std::vector<Hello> hellos = hellos_of({"a", "a", "a"});
  hellos[1].shares_memory = 0;
  EXPECT_EQ(ranks_near(hellos, 0), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(ranks_near(hellos, 1), (std::vector<int32_t>{1}));
  EXPECT_EQ(count_beside(hellos, 1), 3);
  EXPECT_EQ(count_before(hellos, 2), 2);
}

}  // namespace
}  // namespace candor::comm
