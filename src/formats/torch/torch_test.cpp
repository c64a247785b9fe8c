// Files of torch.save: the seeds of tests/fuzz/corpus/torch_file, whole and damaged.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/torch/torch_file.h"
#include "support/mutate.h"
#include "support/shared_data.h"

namespace candor::formats::torch {
namespace {

using candor::testing::read_bytes;

std::filesystem::path seed(const char* name) {
  return candor::testing::project_file("tests/fuzz/corpus/torch_file") / name;
}

std::vector<float> values_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.shape.n_elements()));
  decode_elements(view.dtype, view.data, view.shape.n_elements(), values.data());
  return values;
}

TEST(torch_file, a_heads_tensors_are_views_of_the_file) {
  const auto file = TorchFile::open(seed("linear.pt"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].name, "weight");
  EXPECT_EQ(to_string(file->tensors()[0].shape), "[1, 4]");
  EXPECT_EQ(values_of(file->tensors()[0]), (std::vector<float>{0.5f, -1.0f, 2.0f, 0.25f}));
  EXPECT_EQ(file->tensors()[1].name, "bias");
  EXPECT_EQ(values_of(file->tensors()[1]), std::vector<float>{0.125f});
}

TEST(torch_file, element_types_and_parts_of_a_storage) {
  const auto kinds = TorchFile::open(seed("kinds.pt"));
  ASSERT_TRUE(kinds) << kinds.error().message;
  ASSERT_EQ(kinds->tensors().size(), 4u);
  EXPECT_EQ(kinds->tensors()[1].dtype, DType::kF16);
  EXPECT_EQ(kinds->tensors()[2].dtype, DType::kBF16);
  EXPECT_EQ(kinds->tensors()[3].dtype, DType::kF64);
  EXPECT_EQ(values_of(kinds->tensors()[1]), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const auto views = TorchFile::open(seed("views.pt"));
  ASSERT_TRUE(views) << views.error().message;
  EXPECT_EQ(values_of(views->tensors()[0]), (std::vector<float>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(views->tensors()[2].name, "parameter");
}

TEST(torch_file, whatever_is_more_than_tensors_is_refused_and_nothing_runs) {
  const std::pair<const char*, const char*> kBad[] = {{"runs.pt", "names '__builtin__\\x0aprint'"},
                                                      {"integers.pt", "names 'torch\\x0aLongStorage'"},
                                                      {"turned.pt", "not stored row by row"},
                                                      {"nested.pt", "no dict of tensors"},
                                                      {"old.pt", "since version 1.6"},
                                                      {"runs.pkl", "since version 1.6"}};
  for (const auto& [name, reason] : kBad) {
    const auto file = TorchFile::open(seed(name));
    ASSERT_FALSE(file) << name;
    EXPECT_NE(file.error().message.find(reason), std::string::npos) << file.error().message;
  }
}

TEST(torch_file, damage_never_leaves_the_file) {
  for (const char* name : {"linear.pt", "views.pt"}) {
    std::vector<std::byte> bytes = read_bytes(seed(name));
    for (size_t n = 0; n < bytes.size(); n += 7) {
      const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      EXPECT_FALSE(read_archive(part, "'part'"));
    }
    for (uint64_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      candor::testing::flip_bit(bytes, bit);
      if (const auto views = read_archive(bytes, "'flipped'")) {
        for (const TensorView& view : *views) values_of(view);
      }
      candor::testing::flip_bit(bytes, bit);
    }
  }
}

}  // namespace
}  // namespace candor::formats::torch
