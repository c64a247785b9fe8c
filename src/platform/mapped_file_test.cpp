#include "platform/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "support/temp_folder.h"

namespace candor::platform {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string message_of(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  return file ? "opened" : file.error().message;
}

TEST(mapped_file, shows_the_bytes_and_keeps_them_when_moved) {
  const testing::TempFolder folder;
  const auto path = folder.file("a name with \xF0\x9F\x90\xB1.bin", "some bytes");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(text_of(*file), "some bytes");
  const MappedFile moved = std::move(*file);
  EXPECT_EQ(text_of(moved), "some bytes");
  EXPECT_EQ(moved.path(), path);
}

TEST(mapped_file, an_empty_file_has_no_bytes) {
  const testing::TempFolder folder;
  const auto file = MappedFile::open(folder.file("empty", ""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
  EXPECT_TRUE(file->still_intact());
}

TEST(mapped_file, refuses_all_but_regular_files_by_name_and_kind) {
  const testing::TempFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(message_of(pipe).find("pipe' is a pipe"), std::string::npos);
  EXPECT_EQ(message_of("/dev/random"), "'/dev/random' is a device; name a regular file");
  EXPECT_NE(message_of(folder.path()).find("is a folder"), std::string::npos);
  const auto missing = MappedFile::open(folder.path() / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(missing.error().message.find("no such file"), std::string::npos);
}

TEST(mapped_file, refuses_a_file_that_may_not_be_read) {
  constexpr uid_t kNobody = 65534;
  const testing::TempFolder folder;
  const auto path = folder.file("secret", "x");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  const bool is_root = geteuid() == 0;  // root may read every file
  if (is_root && seteuid(kNobody) != 0) GTEST_SKIP() << "root cannot become another user here";
  const std::string message = message_of(path);
  const bool is_back = !is_root || seteuid(0) == 0;
  ASSERT_TRUE(is_back);
  EXPECT_NE(message.find("cannot open it for reading: Permission denied"), std::string::npos) << message;
}

TEST(mapped_file, notices_that_the_file_has_become_shorter) {
  const testing::TempFolder folder;
  const auto path = folder.file("shrinking", std::string(10000, 'x'));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->still_intact());
  std::filesystem::resize_file(path, 5000);
  EXPECT_FALSE(file->still_intact());
}

TEST(mapped_file, is_not_fooled_by_another_file_under_the_same_name) {
  const testing::TempFolder folder;
  const auto path = folder.file("model", "the old one");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  std::filesystem::rename(folder.file("new", "x"), path);
  EXPECT_TRUE(file->still_intact());
  EXPECT_EQ(text_of(*file), "the old one");
}

}  // namespace
}  // namespace candor::platform
