#include "quantize/importance.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "support/memory_model_file.h"

namespace candor::quantize {
namespace {

using testing::MemoryModelFile;

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

void add(MemoryModelFile& file, const std::string& name, const Shape& shape, const std::vector<float>& values) {
  file.add_tensor(name, DType::kF32, shape, bytes_of(values));
}

MemoryModelFile model() {
  MemoryModelFile file;
  add(file, "blk.0.attn_q.weight", {2, {3, 4, 0, 0}}, std::vector<float>(12, 1.0f));
  add(file, "blk.0.ffn_up_exps.weight", {3, {2, 3, 4, 0}}, std::vector<float>(24, 1.0f));
  return file;
}

// With the sums of one matrix, and of two experts.
MemoryModelFile imatrix(std::vector<float> sums = {2, 4, 6, 8}, float count = 2.0f) {
  MemoryModelFile file;
  file.set_string("general.type", "imatrix");
  add(file, "blk.0.attn_q.weight.in_sum2", {2, {1, 4, 0, 0}}, sums);
  add(file, "blk.0.attn_q.weight.counts", {2, {1, 1, 0, 0}}, {count});
  add(file, "blk.0.ffn_up_exps.weight.in_sum2", {2, {2, 4, 0, 0}}, {1, 1, 1, 1, 8, 8, 8, 8});
  add(file, "blk.0.ffn_up_exps.weight.counts", {2, {2, 1, 0, 0}}, {1, 4});
  return file;
}

std::string refusal(const MemoryModelFile& file, const MemoryModelFile& of) {
  const auto importance = Importance::read(file, of);
  return importance ? "read" : importance.error().message;
}

TEST(importance, is_the_mean_square_of_what_came_in) {
  const auto importance = Importance::read(imatrix(), model());
  ASSERT_TRUE(importance) << importance.error().message;
  EXPECT_EQ(importance->n_tensors(), 2u);
  const auto q = importance->of("blk.0.attn_q.weight", 0);
  EXPECT_EQ(std::vector<float>(q.begin(), q.end()), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(importance->of("blk.0.ffn_up_exps.weight", 0)[3], 1.0f);
  EXPECT_EQ(importance->of("blk.0.ffn_up_exps.weight", 1)[0], 2.0f);
  EXPECT_TRUE(importance->of("output.weight", 0).empty());
}

TEST(importance, of_what_is_none_or_of_another_model_is_refused) {
  MemoryModelFile none = imatrix();
  none.set_string("general.type", "model");
  EXPECT_NE(refusal(none, model()).find("general.type is 'model'"), std::string::npos) << refusal(none, model());
  MemoryModelFile smaller = model();
  smaller.remove_tensor("blk.0.ffn_up_exps.weight");
  EXPECT_NE(refusal(imatrix(), smaller).find("'blk.0.ffn_up_exps.weight' is no tensor"), std::string::npos);
  MemoryModelFile wider;
  add(wider, "blk.0.attn_q.weight", {2, {3, 8, 0, 0}}, std::vector<float>(24, 1.0f));
  EXPECT_NE(refusal(imatrix(), wider).find("has 4 inputs of all matrices, expected 8 of 1"), std::string::npos);
  MemoryModelFile empty;
  empty.set_string("general.type", "imatrix");
  EXPECT_NE(refusal(empty, model()).find("names no matrix"), std::string::npos);
}

TEST(importance, counts_of_zero_and_sums_that_cannot_be_are_refused) {
  EXPECT_NE(refusal(imatrix({2, 4, 6, 8}, 0.0f), model()).find("was used 0 times"), std::string::npos);
  EXPECT_NE(refusal(imatrix({2, -4, 6, 8}), model()).find("the file is damaged"), std::string::npos);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(refusal(imatrix({2, nan, 6, 8}), model()).find("the file is damaged"), std::string::npos);
  MemoryModelFile no_counts = imatrix();
  no_counts.remove_tensor("blk.0.attn_q.weight.counts");
  EXPECT_NE(refusal(no_counts, model()).find("lacks its counts"), std::string::npos);
}

}  // namespace
}  // namespace candor::quantize
