// The store by itself: what is read is what was written, or nothing, whatever became of the files.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "prefix_store/store.h"
#include "support/temp_folder.h"

namespace candor::testing::prefixes {
namespace {

namespace fs = std::filesystem;
using prefix_store::Digest;
using prefix_store::RecordHeader;
using prefix_store::Store;
using prefix_store::StoreOptions;

constexpr size_t kTokens = 32;
constexpr uint64_t kMiB = uint64_t{1} << 20;

Digest digest_of(uint32_t number) {
  Digest digest{};
  std::memcpy(digest.data(), &number, sizeof number);
  digest[15] = 7;
  return digest;
}

std::vector<int32_t> tokens_of(uint32_t number) {
  std::vector<int32_t> tokens(kTokens);
  for (size_t i = 0; i < kTokens; ++i) tokens[i] = static_cast<int32_t>(number * 31 + i);
  return tokens;
}

std::vector<std::byte> payload_of(uint32_t number, size_t n_bytes = 900) {
  std::mt19937 random(number);
  std::vector<std::byte> bytes(n_bytes + number % 50);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

bool put(Store& store, uint32_t number, size_t n_bytes = 900) {
  const auto payload = payload_of(number, n_bytes);
  RecordHeader header{.n_tokens = kTokens, .digest = digest_of(number), .parent = digest_of(number + 1)};
  header.block_bytes = payload.size();
  std::ranges::copy(tokens_of(number), header.tokens.begin());
  return store.append(header, payload);
}

// 1: it is there as it was written, 0: it is not there, -1: it is wrong.
int look_up(Store& store, uint32_t number, size_t n_bytes = 900) {
  std::vector<std::byte> payload;
  if (!store.read(digest_of(number), digest_of(number + 1), tokens_of(number), payload)) return 0;
  return payload == payload_of(number, n_bytes) ? 1 : -1;
}

std::unique_ptr<Store> opened(const fs::path& folder, uint64_t max_bytes = 64 * kMiB, uint64_t segment_bytes = 0) {
  auto store = Store::open({.folder = folder, .max_bytes = max_bytes, .segment_bytes = segment_bytes});
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().message;
  return nullptr;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

TEST(prefix_store, what_was_written_is_read_by_who_opens_it_later) {
  const TempFolder folder;
  const fs::path path = folder.path() / "a/b";
  {
    const auto store = opened(path, 64 * kMiB, 20'000);
    for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(put(*store, i));
    EXPECT_GT(store->figures().n_segments, 3u);
  }
  const auto store = opened(path);
  EXPECT_EQ(store->figures().n_blocks, 100u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(look_up(*store, i), 1);
  EXPECT_EQ(look_up(*store, 100), 0);
  std::vector<std::byte> payload;
  EXPECT_FALSE(store->read(digest_of(3), digest_of(5), tokens_of(3), payload)) << "another parent";
  EXPECT_FALSE(store->read(digest_of(6), digest_of(7), tokens_of(7), payload)) << "other tokens";
}

TEST(prefix_store, without_its_indexes_it_finds_the_same) {
  const TempFolder folder;
  {
    const auto store = opened(folder.path() / "p", 64 * kMiB, 20'000);
    for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(put(*store, i));
  }
  for (const auto& file : fs::directory_iterator(folder.path() / "p")) {
    if (file.path().extension() == ".index") fs::remove(file.path());
  }
  const auto store = opened(folder.path() / "p");
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(look_up(*store, i), 1);
}

// Every structure: headers, payloads, padding, indexes.
TEST(prefix_store, of_ten_thousand_flipped_bits_none_gives_a_wrong_block) {
  const TempFolder folder;
  const fs::path path = folder.path() / "p";
  {
    const auto store = opened(path, 64 * kMiB, 4'000);
    for (uint32_t i = 0; i < 12; ++i) ASSERT_TRUE(put(*store, i, 200));
  }
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(path)) {
    if (file.path().filename() != "lock") files.push_back(file.path());
  }
  std::ranges::sort(files);
  std::mt19937 random(9);
  int n_lost = 0;
  for (int i = 0; i < 10'000; ++i) {
    const fs::path& file = files[random() % files.size()];
    const std::string whole = content_of(file);
    std::string flipped = whole;
    flipped[random() % flipped.size()] ^= static_cast<char>(1 << random() % 8);
    write(file, flipped);
    {
      const auto store = opened(path);
      for (uint32_t block = 0; block < 12; ++block) {
        const int found = look_up(*store, block, 200);
        ASSERT_GE(found, 0) << file << " block " << block;
        n_lost += found == 0 ? 1 : 0;
      }
    }
    write(file, whole);
  }
  EXPECT_GT(n_lost, 1000);
}

TEST(prefix_store, a_file_cut_anywhere_loses_what_is_behind_and_no_more) {
  const TempFolder folder;
  const fs::path path = folder.path() / "p";
  {
    const auto store = opened(path);
    for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(put(*store, i, 200));
  }
  const fs::path file = path / "0000000000000001.blocks";
  const std::string whole = content_of(file);
  int before = 0;
  for (size_t length = 0; length <= whole.size(); length += 16) {
    write(file, whole.substr(0, length));
    const auto store = opened(path);
    int n_found = 0;
    for (uint32_t block = 0; block < 5; ++block) {
      const int found = look_up(*store, block, 200);
      ASSERT_GE(found, 0);
      n_found += found;
    }
    EXPECT_GE(n_found, before);
    before = n_found;
  }
  EXPECT_EQ(before, 5);
}

TEST(prefix_store, over_its_size_what_was_never_found_goes_first) {
  const TempFolder folder;
  const auto store = opened(folder.path() / "p", 400'000, 50'000);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(put(*store, i));
    for (uint32_t hot = 0; hot < std::min<uint32_t>(i, 10); ++hot) EXPECT_EQ(look_up(*store, hot), 1) << i;
  }
  const auto figures = store->figures();
  EXPECT_LE(figures.n_bytes, 400'000u);
  EXPECT_GT(figures.n_removed, 10u);
  EXPECT_EQ(look_up(*store, 999), 1);
  EXPECT_EQ(look_up(*store, 100), 0);
}

TEST(prefix_store, many_short_runs_leave_few_files) {
  const TempFolder folder;
  for (uint32_t i = 0; i < 100; ++i) {
    const auto store = opened(folder.path() / "p");
    ASSERT_TRUE(put(*store, i));
  }
  const auto store = opened(folder.path() / "p");
  EXPECT_LE(store->figures().n_segments, 20u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(look_up(*store, i), 1);
}

TEST(prefix_store, one_writes_and_others_see_it) {
  const TempFolder folder;
  const auto writer = opened(folder.path() / "p");
  ASSERT_TRUE(put(*writer, 1));
  const auto reader = opened(folder.path() / "p");
  EXPECT_EQ(look_up(*reader, 1), 1);
  EXPECT_FALSE(put(*reader, 2)) << "the other one holds the lock";
  EXPECT_EQ(reader->figures().n_unwritten, 1u);
  EXPECT_FALSE(put(*reader, 2)) << "nor is it asked again at once";
  ASSERT_TRUE(put(*writer, 3));
  EXPECT_EQ(look_up(*reader, 3), 0);
  reader->refresh(true);
  EXPECT_EQ(look_up(*reader, 3), 1);
  EXPECT_EQ(writer->remove_if([](const RecordHeader& header) { return header.digest == digest_of(1); }), 1u);
  reader->refresh(true);
  EXPECT_EQ(look_up(*reader, 1), 0);
  EXPECT_EQ(look_up(*reader, 3), 1);
  EXPECT_FALSE(reader->remove_if([](const RecordHeader&) { return true; }));
  writer->end_writing();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_TRUE(put(*reader, 4));
  writer->refresh(true);
  EXPECT_EQ(look_up(*writer, 4), 1);
}

// The child writes until it is killed.
TEST(prefix_store, killed_at_five_hundred_moments_it_gives_no_wrong_block) {
  const TempFolder folder;
  const fs::path path = folder.path() / "p";
  std::mt19937 random(4);
  uint32_t n_most = 0;
  for (int i = 0; i < 500; ++i) {
    int begun[2] = {-1, -1};
    ASSERT_EQ(::pipe(begun), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = opened(path, 2 * kMiB, 100'000);
      put(*store, static_cast<uint32_t>(i) * 40, 3000);
      if (::write(begun[1], "x", 1) != 1) ::_exit(1);
      for (uint32_t block = static_cast<uint32_t>(i) * 40;; ++block) put(*store, block, 3000);
    }
    ::close(begun[1]);
    char byte = 0;
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    ::close(begun[0]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    if (i % 10 != 0) continue;
    const auto store = opened(path, 2 * kMiB);
    ASSERT_NE(store, nullptr);
    for (const prefix_store::RecordPlace& place : store->blocks()) {
      uint32_t number = 0;
      std::memcpy(&number, place.header.digest.data(), sizeof number);
      ASSERT_EQ(look_up(*store, number, 3000), 1) << number;
      n_most = std::max(n_most, number);
    }
  }
  EXPECT_GT(n_most, 1000u);
  EXPECT_LE(opened(path, 2 * kMiB)->figures().n_bytes, 3 * kMiB);
}

TEST(prefix_store, four_processes_share_it) {
  const TempFolder folder;
  const fs::path path = folder.path() / "p";
  std::vector<pid_t> children;
  for (uint32_t child = 0; child < 4; ++child) {
    const pid_t process = ::fork();
    ASSERT_GE(process, 0);
    if (process == 0) {
      int n_wrong = 0;
      for (uint32_t round = 0; round < 20; ++round) {
        const auto store = opened(path, kMiB, 60'000);
        for (uint32_t block = 0; block < 60; ++block) {
          n_wrong += look_up(*store, block) < 0 ? 1 : 0;
          put(*store, block);
        }
        store->refresh(true);
        for (uint32_t block = 0; block < 60; ++block) n_wrong += look_up(*store, block) < 0 ? 1 : 0;
      }
      ::_exit(n_wrong == 0 ? 0 : 1);
    }
    children.push_back(process);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const auto store = opened(path);
  for (uint32_t block = 0; block < 60; ++block) EXPECT_EQ(look_up(*store, block), 1) << block;
}

TEST(prefix_store, a_full_disk_loses_nothing_that_was_there) {
  const TempFolder folder;
  const fs::path path = folder.path() / "p";
  { ASSERT_TRUE(put(*opened(path), 1)); }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 10'000, .rlim_max = 10'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto store = opened(path);
    uint32_t n_written = 0;
    for (uint32_t block = 2; block < 50; ++block) n_written += put(*store, block) ? 1 : 0;
    const auto figures = store->figures();
    const bool is_reported =
        figures.n_unwritten > 0 && figures.last_problem.find("cannot be written") != std::string::npos;
    bool are_right = look_up(*store, 1) == 1;
    for (uint32_t block = 2; block < 2 + n_written; ++block) are_right = are_right && look_up(*store, block) == 1;
    ::_exit(is_reported && are_right && n_written > 0 && n_written < 48 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto store = opened(path);
  EXPECT_EQ(look_up(*store, 1), 1);
  EXPECT_EQ(look_up(*store, 2), 1);
}

TEST(prefix_store, a_folder_that_is_removed_is_no_harm) {
  const TempFolder folder;
  const auto store = opened(folder.path() / "p", 64 * kMiB, 5'000);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(put(*store, i));
  fs::remove_all(folder.path() / "p");
  for (uint32_t i = 5; i < 40; ++i) put(*store, i);
  store->refresh(true);
  for (uint32_t i = 0; i < 40; ++i) EXPECT_GE(look_up(*store, i), 0);
  EXPECT_GT(store->figures().n_unwritten, 0u);
}

TEST(prefix_store, folders_that_cannot_be_trusted_are_refused) {
  const TempFolder folder;
  const auto refusal = [](const fs::path& path) {
    const auto store = Store::open({.folder = path, .max_bytes = kMiB});
    return store ? std::string() : store.error().message;
  };
  write(folder.path() / "file", "text");
  EXPECT_NE(refusal(folder.path() / "file").find("is no folder"), std::string::npos);
  EXPECT_NE(refusal(folder.path() / "file/below").find("cannot be made"), std::string::npos);
  EXPECT_NE(refusal("/proc/nowhere").find("cannot be made"), std::string::npos);
  fs::create_directory(folder.path() / "open");
  ::chmod((folder.path() / "open").c_str(), 0777);
  EXPECT_NE(refusal(folder.path() / "open").find("written to by others"), std::string::npos);
  if (::geteuid() != 0) return;
  fs::create_directory(folder.path() / "theirs");
  ASSERT_EQ(::chown((folder.path() / "theirs").c_str(), 12345, 12345), 0);
  EXPECT_NE(refusal(folder.path() / "theirs").find("another user's"), std::string::npos);
}

TEST(prefix_store, files_of_others_are_left_alone) {
  const TempFolder folder;
  const fs::path path = folder.path() / "p";
  fs::create_directory(path);
  ::chmod(path.c_str(), 0700);
  write(path / "notes.txt", "mine");
  write(path / "000000000000000a.blocks", "not a segment at all, but long enough to hold a header if it were one");
  fs::create_directory(path / "000000000000000b.blocks");
  fs::create_symlink("/etc/passwd", path / "000000000000000c.blocks");
  const auto store = opened(path);
  EXPECT_EQ(store->figures().n_blocks, 0u);
  ASSERT_TRUE(put(*store, 1));
  EXPECT_EQ(look_up(*store, 1), 1);
  EXPECT_EQ(content_of(path / "notes.txt"), "mine");
}

}  // namespace
}  // namespace candor::testing::prefixes
