#include "platform/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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
  EXPECT_TRUE(file->check_intact());
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

// Pages of the part that are in this process' memory.
size_t resident_pages(std::span<const std::byte> part) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  size_t n = 0;
  for (size_t at = 0; at < part.size(); at += page) {
    uint64_t entry = 0;
    const uintptr_t number = reinterpret_cast<uintptr_t>(part.data() + at) / page;
    if (pread(map, &entry, sizeof(entry), static_cast<off_t>(number * sizeof(entry))) != sizeof(entry)) break;
    n += entry >> 63;
  }
  close(map);
  return n;
}

TEST(mapped_file, what_was_read_leaves_memory_and_can_be_read_again) {
  constexpr size_t kBytes = 1 << 20;
  const testing::TempFolder folder;
  auto opened = MappedFile::open(folder.file("large", std::string(kBytes, 'x')));
  const auto other = MappedFile::open(folder.file("other", std::string(kBytes, 'y')));
  ASSERT_TRUE(opened && other);
  const MappedFile& file = *opened;
  const auto middle = file.bytes().subspan(5000, kBytes - 10000);
  file.will_read(middle);
  EXPECT_EQ(text_of(file), std::string(kBytes, 'x'));
  EXPECT_EQ(text_of(*other), std::string(kBytes, 'y'));
  if (resident_pages(middle) == 0) GTEST_SKIP() << "the system does not tell which pages are in memory";
  file.has_read(other->bytes());
  file.has_read(middle.subspan(0, 10));
  file.has_read({});
  EXPECT_EQ(resident_pages(other->bytes()), resident_pages(file.bytes()));
  file.has_read(middle);
  EXPECT_LE(resident_pages(middle), 2u);
  EXPECT_GE(resident_pages(file.bytes()), 2u);
  EXPECT_EQ(text_of(file), std::string(kBytes, 'x'));
  EXPECT_TRUE(file.check_intact());
}

TEST(mapped_file, notices_that_the_file_has_become_shorter) {
  const testing::TempFolder folder;
  const auto path = folder.file("shrinking", std::string(10000, 'x'));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->check_intact());
  std::filesystem::resize_file(path, 5000);
  EXPECT_FALSE(file->check_intact());
}

TEST(mapped_file, what_a_cut_took_away_reads_as_zeros_and_is_said) {
  constexpr size_t kBytes = 1 << 20;
  const testing::TempFolder folder;
  const auto path = folder.file("cut", std::string(kBytes, 'x'));
  auto opened = MappedFile::open(path);
  ASSERT_TRUE(opened);
  const MappedFile file = std::move(*opened);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(file.bytes()[kBytes / 2], std::byte{0});
  EXPECT_EQ(file.bytes()[kBytes - 1], std::byte{0});
  EXPECT_EQ(file.bytes()[0], std::byte{0});
  std::filesystem::resize_file(path, kBytes);
  const auto intact = file.check_intact();
  ASSERT_FALSE(intact) << "bytes were lost, although the file has its size again";
  EXPECT_NE(intact.error().message.find("cut': bytes of the file could not be read"), std::string::npos);
  EXPECT_EQ(intact.error().kind, ErrorKind::kIo);
}

TEST(mapped_file, threads_that_read_a_cut_file_at_once_all_go_on) {
  constexpr size_t kBytes = 4 << 20;
  const testing::TempFolder folder;
  for (int round = 0; round < 20; ++round) {
    const auto path = folder.file("cut", std::string(kBytes, 'x'));
    const auto file = MappedFile::open(path);
    ASSERT_TRUE(file);
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i) {
      readers.emplace_back([&file] {
        const volatile std::byte* bytes = file->bytes().data();
        for (size_t at = 0; at < kBytes; at += 512) static_cast<void>(bytes[at]);
      });
    }
    std::filesystem::resize_file(path, kBytes / 16);
    for (std::thread& reader : readers) reader.join();
    EXPECT_FALSE(file->check_intact());
  }
}

TEST(mapped_file, ranges_that_come_and_go_stay_told_apart) {
  const testing::TempFolder folder;
  const auto whole_path = folder.file("whole", std::string(100000, 'w'));
  const auto cut_path = folder.file("cut", std::string(100000, 'x'));
  for (int round = 0; round < 100; ++round) {
    const auto whole = MappedFile::open(whole_path);
    const auto cut = MappedFile::open(cut_path);
    ASSERT_TRUE(whole && cut);
    std::filesystem::resize_file(cut_path, 10);
    EXPECT_EQ(cut->bytes()[90000], std::byte{0});
    std::filesystem::resize_file(cut_path, 100000);
    EXPECT_TRUE(whole->check_intact());
    EXPECT_EQ(whole->bytes()[90000], std::byte{'w'});
    EXPECT_FALSE(cut->check_intact());
  }
}

// A process that ends by a signal leaves nothing behind: its folder goes before it.
void remove_folder_of(const std::filesystem::path& path) {
  std::filesystem::remove_all(path.parent_path());
}

// Reads behind the end of a file that is mapped without a guard.
void read_behind_the_end(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  remove_folder_of(path);
  const auto* bytes =
      static_cast<const volatile char*>(::mmap(nullptr, 1 << 16, PROT_READ, MAP_PRIVATE, descriptor, 0));
  static_cast<void>(bytes[1 << 15]);
}

TEST(lost_pages_death_test, a_bus_error_elsewhere_ends_the_process_as_it_always_did) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const testing::TempFolder folder;
  const auto path = folder.file("short", "x");
  const auto guarded = MappedFile::open(path);
  ASSERT_TRUE(guarded);
#ifndef CANDOR_SANITIZED
  EXPECT_EXIT(read_behind_the_end(path), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT((remove_folder_of(path), ::raise(SIGBUS)), ::testing::KilledBySignal(SIGBUS), "");
#endif
}

TEST(lost_pages_death_test, a_handler_that_was_there_before_gets_what_is_not_ours) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const testing::TempFolder folder;
  const auto path = folder.file("short", "x");
  const auto meets_the_other_handler = [&path] {
    struct sigaction other {};
    other.sa_handler = [](int) { ::_exit(7); };
    ::sigaction(SIGBUS, &other, nullptr);
    const auto guarded = MappedFile::open(path);
    read_behind_the_end(path);
  };
  EXPECT_EXIT(meets_the_other_handler(), ::testing::ExitedWithCode(7), "");
}

TEST(mapped_file, is_not_fooled_by_another_file_under_the_same_name) {
  const testing::TempFolder folder;
  const auto path = folder.file("model", "the old one");
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  std::filesystem::rename(folder.file("new", "x"), path);
  EXPECT_TRUE(file->check_intact());
  EXPECT_EQ(text_of(*file), "the old one");
}

}  // namespace
}  // namespace candor::platform
