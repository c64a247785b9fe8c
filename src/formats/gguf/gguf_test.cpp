#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "formats/gguf/gguf_reader.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/gguf/split_name.h"
#include "formats/quote.h"
#include "support/mutate.h"
#include "support/random_weights.h"
#include "support/raw_gguf.h"
#include "support/temp_folder.h"

namespace candor::formats::gguf {
namespace {

using testing::make_shape;
using testing::OwnedTensor;
using testing::random_tensor;

void add(GgufHeader& header, std::string_view key, const GgufValue& value) {
  const auto added = header.add_meta(key, value);
  ASSERT_TRUE(added) << added.error().message;
}

void add(GgufHeader& header, const OwnedTensor& tensor) {
  const auto added = header.add_tensor(tensor.view().name, tensor.view().dtype, tensor.view().shape);
  ASSERT_TRUE(added) << added.error().message;
}


Result<void> write(const std::filesystem::path& path, const GgufHeader& header,
                   const std::vector<const OwnedTensor*>& tensors) {
  CANDOR_ASSIGN(GgufWriter writer, GgufWriter::create(path, header));
  for (const OwnedTensor* tensor : tensors) CANDOR_TRY(writer.write_tensor(tensor->view().bytes()));
  return writer.finish();
}

// A part of a split model with one tensor.
std::filesystem::path write_part(const testing::TempFolder& folder, int part, int n_parts, const OwnedTensor& tensor,
                                 int n_tensors) {
  GgufHeader header;
  add(header, "split.no", GgufScalar(static_cast<uint16_t>(part - 1)));
  add(header, "split.count", GgufScalar(static_cast<uint16_t>(n_parts)));
  add(header, "split.tensors.count", GgufScalar(int32_t{n_tensors}));
  if (part == 1) add(header, "general.name", GgufScalar(std::string("whole")));
  add(header, tensor);
  const auto path = split_part_path(folder.path() / "x", {"model", 1, n_parts}, part);
  EXPECT_TRUE(write(path, header, {&tensor}));
  return path;
}

TEST(gguf, every_value_type_survives_writing_and_reading) {
  const testing::TempFolder folder;
  GgufHeader header;
  add(header, "u8", GgufScalar(uint8_t{255}));
  add(header, "i8", GgufScalar(int8_t{-128}));
  add(header, "u16", GgufScalar(uint16_t{65535}));
  add(header, "i16", GgufScalar(int16_t{-32768}));
  add(header, "u32", GgufScalar(uint32_t{4294967295u}));
  add(header, "i32", GgufScalar(int32_t{-5}));
  add(header, "f32", GgufScalar(0.1f));
  add(header, "bool", GgufScalar(true));
  add(header, "string", GgufScalar(std::string("bytes \xff\x00 too", 12)));
  add(header, "u64", GgufScalar(uint64_t{18446744073709551615u}));
  add(header, "i64", GgufScalar(int64_t{-9}));
  add(header, "f64", GgufScalar(0.1));
  add(header, "strings", GgufArray(std::vector<std::string>{"a", "", "c"}));
  add(header, "floats", GgufArray(std::vector<float>{0.5f, -1.0f}));
  add(header, "bools", GgufArray(std::vector<bool>{true, false, true}));
  add(header, "none", GgufArray(std::vector<int32_t>{}));
  const auto path = folder.path() / "all.gguf";
  ASSERT_TRUE(write(path, header, {}));

  const auto opened = open_model_file(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const ModelFile& file = **opened;
  EXPECT_EQ(file.info().format, "GGUF v3");
  EXPECT_EQ(file.metadata().size(), 16u);
  EXPECT_EQ(file.metadata()[2].key, "u16");
  EXPECT_EQ(meta_int(file, "u8").value(), 255);
  EXPECT_EQ(meta_int(file, "i8").value(), -128);
  EXPECT_EQ(meta_int(file, "u16").value(), 65535);
  EXPECT_EQ(meta_int(file, "i16").value(), -32768);
  EXPECT_EQ(meta_int(file, "u32").value(), 4294967295);
  EXPECT_EQ(meta_int(file, "i32").value(), -5);
  EXPECT_EQ(meta_int(file, "i64").value(), -9);
  EXPECT_EQ(meta_float(file, "f32").value(), double{0.1f});
  EXPECT_EQ(meta_float(file, "f64").value(), 0.1);
  EXPECT_EQ(meta_bool(file, "bool").value(), true);
  EXPECT_EQ(meta_string(file, "string").value(), std::string_view("bytes \xff\x00 too", 12));
  EXPECT_EQ(*meta_strings(file, "strings").value(), (std::vector<std::string_view>{"a", "", "c"}));
  EXPECT_EQ(*meta_floats(file, "floats").value(), (std::vector<double>{0.5, -1.0}));
  EXPECT_TRUE(meta_ints(file, "none").value()->empty());
  EXPECT_FALSE(meta_int(file, "u64"));
}

TEST(gguf, typed_access_says_what_stands_there_and_what_was_expected) {
  const testing::TempFolder folder;
  GgufHeader header;
  add(header, "name", GgufScalar(std::string("x")));
  add(header, "layers", GgufScalar(uint32_t{300}));
  const auto path = folder.path() / "typed.gguf";
  ASSERT_TRUE(write(path, header, {}));
  const auto file = open_model_file(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(meta_int(**file, "absent").value(), std::nullopt);
  EXPECT_EQ(meta_strings(**file, "absent").value(), nullptr);
  EXPECT_EQ(require_int(**file, "layers", 1, 300).value(), 300);
  const std::string at = in_quotes(path.string()).append(": key ");
  EXPECT_EQ(meta_int(**file, "name").error().message, at + "'name': the type is string, expected integer");
  EXPECT_EQ(meta_float(**file, "layers").error().message, at + "'layers': the type is integer, expected float");
  EXPECT_EQ(require_int(**file, "layers", 1, 200).error().message,
            at + "'layers': the value is 300, expected 1 to 200");
  EXPECT_EQ(require_int(**file, "absent", 1, 2).error().message, at + "'absent': the key is missing; it is needed");
}

TEST(gguf, tensors_of_every_known_type_survive_writing_and_reading) {
  const testing::TempFolder folder;
  for (const uint32_t alignment : {8u, 32u, 4096u}) {
    GgufHeader header(alignment);
    std::vector<std::unique_ptr<OwnedTensor>> tensors;
    std::vector<const OwnedTensor*> in_order;
    for (const DTypeInfo& info : dtype_table()) {
      tensors.push_back(std::make_unique<OwnedTensor>(std::string(info.name), info.dtype, make_shape({3, 256})));
      std::fill_n(tensors.back()->bytes(), tensors.back()->view().n_bytes, static_cast<std::byte>(info.dtype));
      add(header, *tensors.back());
      in_order.push_back(tensors.back().get());
    }
    const auto path = folder.path() / "tensors.gguf";
    ASSERT_TRUE(write(path, header, in_order));
    const auto file = open_model_file(path);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ((*file)->tensors().size(), in_order.size());
    for (const OwnedTensor* tensor : in_order) {
      const TensorView* view = (*file)->find(tensor->view().name);
      ASSERT_NE(view, nullptr);
      EXPECT_EQ(view->shape, tensor->view().shape);
      EXPECT_EQ(view->dtype, tensor->view().dtype);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % alignment, 0u);
      EXPECT_TRUE(std::equal(view->data, view->data + view->n_bytes, tensor->view().data));
    }
  }
}

TEST(gguf, version_2_reads_as_version_3_does) {
  testing::RawGguf raw;
  raw.version = 2;
  raw.tensors.push_back({"scalar", {}, 0, 0});
  raw.tensors.push_back({"cube", {4, 3, 2}, 0, 32});
  raw.data_bytes = 32 + 96;
  const auto bytes = testing::bytes_of(raw.bytes());
  const auto file = GgufFile::parse(bytes, "v2.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->info().format, "GGUF v2");
  EXPECT_EQ((*file)->find("cube")->shape, make_shape({2, 3, 4}));
  EXPECT_EQ((*file)->find("scalar")->shape.n_elements(), 1);
}

TEST(gguf, the_writer_refuses_what_the_reader_would_refuse) {
  GgufHeader header;
  add(header, "key", GgufScalar(true));
  EXPECT_FALSE(header.add_meta("key", GgufScalar(false)));
  EXPECT_FALSE(header.add_meta("", GgufScalar(false)));
  EXPECT_FALSE(header.add_meta("\xff", GgufScalar(false)));
  EXPECT_FALSE(header.add_meta("general.alignment", GgufScalar(uint32_t{64})));
  EXPECT_TRUE(header.add_tensor("w", DType::kF32, make_shape({2, 2})));
  EXPECT_FALSE(header.add_tensor("w", DType::kF32, make_shape({2, 2})));
  EXPECT_FALSE(header.add_tensor(std::string(64, 'n'), DType::kF32, make_shape({2})));
  EXPECT_FALSE(header.add_tensor("row", DType::kQ4_0, make_shape({2, 33})));
  EXPECT_FALSE(header.add_tensor("zero", DType::kF32, make_shape({0})));
  EXPECT_FALSE(header.add_tensor("huge", DType::kF32, make_shape({int64_t{1} << 40, int64_t{1} << 40})));
}

TEST(gguf, a_writer_that_is_dropped_leaves_the_older_file_and_nothing_beside_it) {
  const testing::TempFolder folder;
  const auto path = folder.file("model.gguf", "the older file");
  GgufHeader header;
  ASSERT_TRUE(header.add_tensor("w", DType::kF32, make_shape({8})));
  {
    auto writer = GgufWriter::create(path, header);
    ASSERT_TRUE(writer) << writer.error().message;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(testing::read_bytes(path), testing::bytes_of("the older file"));
  const auto nowhere = GgufWriter::create(folder.path() / "no" / "folder.gguf", header);
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kIo);
}

TEST(split_name, is_read_from_the_end_of_the_name) {
  const auto name = parse_split_name("dir/big-model-00002-of-00010.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "big-model");
  EXPECT_EQ(name->part, 2);
  EXPECT_EQ(name->n_parts, 10);
  EXPECT_EQ(split_part_path("dir/x.gguf", *name, 10), "dir/big-model-00010-of-00010.gguf");
  for (const char* other : {"model.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf", "m-0000a-of-00002.gguf",
                            "m-00001-of-00002.GGUF", "-00001-of-00002"}) {
    EXPECT_FALSE(parse_split_name(other)) << other;
  }
}

TEST(split_model, any_part_opens_all_parts) {
  const testing::TempFolder folder;
  const OwnedTensor first = random_tensor("first", DType::kF32, {2, 8}, 1);
  const OwnedTensor second = random_tensor("second", DType::kQ8_0, {2, 32}, 2);
  const OwnedTensor third = random_tensor("third", DType::kF16, {8}, 3);
  const std::filesystem::path paths[] = {write_part(folder, 1, 3, first, 3), write_part(folder, 2, 3, second, 3),
                                         write_part(folder, 3, 3, third, 3)};
  for (const auto& path : paths) {
    const auto file = open_model_file(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ((*file)->info().paths.size(), 3u);
    EXPECT_EQ((*file)->tensors().size(), 3u);
    EXPECT_EQ(meta_string(**file, "general.name").value(), "whole");
    EXPECT_EQ((*file)->tensors()[1].name, "second");
    EXPECT_EQ(std::vector(third.view().data, third.view().data + third.view().n_bytes),
              std::vector((*file)->find("third")->data, (*file)->find("third")->data + third.view().n_bytes));
    EXPECT_TRUE((*file)->check_intact());
  }
  std::filesystem::remove(paths[1]);
  const auto without = open_model_file(paths[0]);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(without.error().message.find("model-00002-of-00003.gguf': part 2 of 3 is missing"), std::string::npos);
}

TEST(split_model, parts_that_do_not_belong_together_are_refused) {
  const testing::TempFolder folder;
  const OwnedTensor tensor = random_tensor("w", DType::kF32, {2, 8}, 1);
  const OwnedTensor other = random_tensor("v", DType::kF32, {2, 8}, 1);
  const auto first = write_part(folder, 1, 2, tensor, 2);
  const auto second = write_part(folder, 2, 2, tensor, 2);
  EXPECT_NE(open_model_file(first).error().message.find("tensor 'w' appears in two parts"), std::string::npos);
  write_part(folder, 2, 2, other, 2);
  EXPECT_TRUE(open_model_file(first));
  write_part(folder, 1, 2, tensor, 5);
  EXPECT_NE(open_model_file(first).error().message.find("split.tensors.count is 5"), std::string::npos);
  std::filesystem::copy_file(first, second, std::filesystem::copy_options::overwrite_existing);
  EXPECT_NE(open_model_file(first).error().message.find("should be part 2 of 2"), std::string::npos);
  std::filesystem::rename(first, folder.path() / "renamed.gguf");
  EXPECT_NE(
      open_model_file(folder.path() / "renamed.gguf").error().message.find("name must end in -00001-of-00002.gguf"),
      std::string::npos);
  EXPECT_FALSE(GgufFile::parse(testing::read_bytes(folder.path() / "renamed.gguf"), "bytes"));
}

TEST(gguf, a_file_that_shrinks_after_opening_is_noticed) {
  const testing::TempFolder folder;
  const OwnedTensor tensor = random_tensor("w", DType::kF32, {64, 64}, 1);
  GgufHeader header;
  add(header, tensor);
  const auto path = folder.path() / "model.gguf";
  ASSERT_TRUE(write(path, header, {&tensor}));
  const auto file = open_model_file(path);
  ASSERT_TRUE(file);
  EXPECT_TRUE((*file)->check_intact());
  std::filesystem::resize_file(path, 100);
  EXPECT_FALSE((*file)->check_intact());
}

}  // namespace
}  // namespace candor::formats::gguf
