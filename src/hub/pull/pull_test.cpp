// pull and list against a hub of our own: a server on a local port that speaks as much of the protocol as is used.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>

#include "hub/model_cache.h"
#include "hub/pull/digest.h"
#include "hub/pull/partial_file.h"
#include "hub/pull/pull.h"
#include "support/mock_hub.h"
#include "support/temp_folder.h"

namespace candor::hub {
namespace {

using candor::testing::kCommit;
using candor::testing::MockHub;
using candor::testing::TempFolder;

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class Hub : public ::testing::Test {
 protected:
  // Adds a file to the hub's answer and serves it.
  void publish(const std::string& name, const std::string& content, bool is_large) {
    const auto path = folder_.file("content", std::string_view(content));
    const std::string digest = is_large ? *sha256_of_file(path) : *git_sha1_of_file(path);
    siblings_ += siblings_.empty() ? "" : ",";
    siblings_ += "{\"rfilename\":\"" + name + "\",\"size\":" + std::to_string(content.size()) +
                 (is_large ? ",\"lfs\":{\"sha256\":\"" + digest + "\"}}" : ",\"blobId\":\"" + digest + "\"}");
    hub_.pages["/api/models/u/r/revision/main?blobs=true"] =
        std::string("{\"sha\":\"") + kCommit + "\",\"siblings\":[" + siblings_ + "]}";
    hub_.pages[std::string("/u/r/resolve/") + kCommit + "/" + name] = content;
  }

  Result<PulledModel> pull_model(const std::string& name) {
    return pull(*parse_repo_name(name), {hub_.endpoint(), root(), "secret"}, {});
  }
  static std::string page_of(const std::string& name) { return std::string("/u/r/resolve/") + kCommit + "/" + name; }
  std::filesystem::path blobs() const { return root() / "models--u--r" / "blobs"; }
  static uint64_t bytes_in(const std::filesystem::path& folder) {
    uint64_t n_bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) n_bytes += entry.file_size();
    return n_bytes;
  }
  std::filesystem::path root() const { return folder_.path() / "hub"; }

  TempFolder folder_;
  MockHub hub_;
  std::string siblings_;
};

TEST_F(Hub, a_gguf_file_is_chosen_by_its_quantisation_and_listed_afterwards) {
  publish("m-Q4_K_M.gguf", "four", true);
  publish("m-Q8_0.gguf", "eight", true);
  const auto pulled = pull_model("u/r:q8_0");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(pulled->path), "eight");
  const auto models = list_models(root());
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "u/r");
  EXPECT_EQ(models[0].n_bytes, 5u);
  EXPECT_EQ(*find_cached(*parse_repo_name("u/r:Q8_0"), root()), pulled->path);
  EXPECT_FALSE(find_cached(*parse_repo_name("u/r:q4_k_m"), root()));
  EXPECT_NE(pull_model("u/r:q2_k").error().message.find("m-Q8_0.gguf"), std::string::npos);
}

TEST_F(Hub, a_head_comes_with_its_model_and_is_none) {
  publish("mtp-x-Q8_0.gguf", "head", true);
  publish("mtp-y-Q4_K_M.gguf", "another", true);
  publish("x-Q8_0.gguf", "eight", true);
  const auto pulled = pull_model("u/r");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->path.filename(), "x-Q8_0.gguf");
  EXPECT_EQ(read_text(pulled->path.parent_path() / "mtp-x-Q8_0.gguf"), "head");
  EXPECT_FALSE(std::filesystem::exists(pulled->path.parent_path() / "mtp-y-Q4_K_M.gguf"));
  EXPECT_EQ(list_models(root()).size(), 1u);
  EXPECT_EQ(*find_cached(*parse_repo_name("u/r:Q8_0"), root()), pulled->path);
}

TEST_F(Hub, what_reads_images_comes_with_its_model_and_is_none) {
  publish("m-Q4_K_M.gguf", "four", true);
  publish("x-Q8_0.gguf", "eight", true);
  publish("mmproj-x-Q8_0.gguf", "small", true);
  publish("mmproj-x-f16.gguf", "tower", true);
  publish("mmproj-x-f32.gguf", "large", true);
  const auto pulled = pull_model("u/r:q8_0");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->path.filename(), "x-Q8_0.gguf");
  EXPECT_EQ(read_text(pulled->path.parent_path() / "mmproj-x-f16.gguf"), "tower");
  EXPECT_FALSE(std::filesystem::exists(pulled->path.parent_path() / "mmproj-x-Q8_0.gguf"));
  EXPECT_EQ(list_models(root()).size(), 1u);
  EXPECT_EQ(*find_cached(*parse_repo_name("u/r:Q8_0"), root()), pulled->path);
}

TEST_F(Hub, what_reads_images_stands_beside_the_model_whatever_their_folders) {
  publish("Q8_0/x-Q8_0.gguf", "eight", true);
  publish("towers/mmproj-x-f16.gguf", "tower", true);
  const auto pulled = pull_model("u/r:q8_0");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(pulled->path.filename(), "x-Q8_0.gguf");
  EXPECT_EQ(read_text(pulled->path.parent_path() / "mmproj-x-f16.gguf"), "tower");
}

TEST_F(Hub, a_folder_of_safetensors_comes_with_what_stands_beside_it) {
  publish("config.json", "{}", false);
  publish("model.safetensors", "weights", true);
  publish("preprocessor_config.json", "{\"size\": 1}", false);
  publish("pytorch_model.bin", "pickle", true);
  const auto pulled = pull_model("u/r");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(pulled->path / "model.safetensors"), "weights");
  EXPECT_EQ(read_text(pulled->path / "preprocessor_config.json"), "{\"size\": 1}");
  EXPECT_FALSE(std::filesystem::exists(pulled->path / "pytorch_model.bin"));
  EXPECT_EQ(read_text(root() / "models--u--r" / "refs" / "main"), kCommit);
}

TEST_F(Hub, a_broken_transfer_is_resumed_where_it_stopped) {
  const std::string content(100000, 'w');
  publish("m.gguf", content, true);
  hub_.cut_after = 40000;
  EXPECT_FALSE(pull_model("u/r"));
  hub_.cut_after = std::string::npos;
  const auto pulled = pull_model("u/r");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(pulled->path), content);
  EXPECT_NE(hub_.requests.back().find("Range: bytes=40000-"), std::string::npos);
}

TEST_F(Hub, a_server_that_cannot_resume_is_read_from_the_start) {
  const std::string content(100000, 'w');
  publish("m.gguf", content, true);
  hub_.can_resume = false;
  hub_.cut_after = 40000;
  EXPECT_FALSE(pull_model("u/r"));
  hub_.cut_after = std::string::npos;
  const auto pulled = pull_model("u/r");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(pulled->path), content);
}

TEST_F(Hub, a_wrong_digest_leaves_nothing_behind) {
  publish("m.gguf", "right", true);
  hub_.pages[std::string("/u/r/resolve/") + kCommit + "/m.gguf"] = "wrong";
  EXPECT_NE(pull_model("u/r").error().message.find("digest"), std::string::npos);
  EXPECT_TRUE(list_models(root()).empty());
  EXPECT_TRUE(std::filesystem::is_empty(root() / "models--u--r" / "blobs"));
}

TEST_F(Hub, not_a_byte_beyond_the_stated_size_is_written) {
  publish("m.gguf", "right", true);
  hub_.pages[page_of("m.gguf")] = std::string(size_t{8} << 20, 'x');
  const auto pulled = pull_model("u/r");
  ASSERT_FALSE(pulled);
  EXPECT_NE(pulled.error().message.find("more than the 5 bytes that the hub states"), std::string::npos)
      << pulled.error().message;
  EXPECT_LE(bytes_in(blobs()), 5u);
}

TEST_F(Hub, a_file_shorter_than_stated_is_no_file) {
  publish("m.gguf", "right", true);
  hub_.pages[page_of("m.gguf")] = "rig";
  const auto pulled = pull_model("u/r");
  ASSERT_FALSE(pulled);
  EXPECT_NE(pulled.error().message.find("3 bytes came, the hub states 5"), std::string::npos) << pulled.error().message;
  EXPECT_TRUE(list_models(root()).empty());
}

TEST_F(Hub, what_stands_where_a_download_grows_is_neither_followed_nor_written) {
  publish("m.gguf", "right", true);
  const auto victim = folder_.file("victim", std::string_view("precious"));
  const auto partial = blobs() / (*sha256_of_file(folder_.file("content", std::string_view("right"))) + ".incomplete");
  std::filesystem::create_directories(blobs());
  const std::function<void()> kTraps[] = {
      [&] { std::filesystem::create_symlink(victim, partial); },
      [&] { std::filesystem::create_hard_link(victim, partial); },
      [&] { std::filesystem::create_symlink(folder_.path() / "absent", partial); },
      [&] { ASSERT_EQ(::mkfifo(partial.c_str(), 0600), 0); },
      [&] { folder_.file(std::filesystem::relative(partial, folder_.path()), std::string_view("longer than stated")); },
  };
  for (const auto& lay : kTraps) {
    std::filesystem::remove_all(root());
    std::filesystem::create_directories(blobs());
    lay();
    const auto pulled = pull_model("u/r");
    ASSERT_TRUE(pulled) << pulled.error().message;
    EXPECT_EQ(read_text(pulled->path), "right");
    EXPECT_EQ(read_text(victim), "precious");
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "absent"));
  }
}

TEST_F(Hub, a_download_that_another_process_has_open_is_left_to_it) {
  publish("m.gguf", "right", true);
  std::filesystem::create_directories(blobs());
  const auto partial = blobs() / (*sha256_of_file(folder_.file("content", std::string_view("right"))) + ".incomplete");
  {
    const auto other = PartialFile::open(partial);
    ASSERT_TRUE(other);
    EXPECT_NE(pull_model("u/r").error().message.find("another program is writing it"), std::string::npos);
  }
  EXPECT_TRUE(pull_model("u/r"));
}

TEST_F(Hub, a_damaged_file_of_the_cache_is_noticed_and_fetched_again) {
  publish("m.gguf", "right", true);
  publish("config.json", "{}", false);
  const auto pulled = pull_model("u/r:m");
  ASSERT_TRUE(pulled) << pulled.error().message;
  const auto blob = std::filesystem::canonical(pulled->path);
  for (const char* damage : {"wrong", "", "longer than it was"}) {
    std::ofstream(blob, std::ios::binary) << damage;
    const auto again = pull_model("u/r:m");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->repaired, std::vector<std::string>{"m.gguf"});
    EXPECT_EQ(read_text(again->path), "right");
  }
  const size_t n_requests = hub_.requests.size();
  EXPECT_TRUE(pull_model("u/r:m")->repaired.empty());
  EXPECT_EQ(hub_.requests.size(), n_requests + 1) << "a whole file is not fetched again";
}

TEST_F(Hub, a_disk_that_is_full_is_named_and_what_has_arrived_is_kept) {
  const std::string content(300000, 'w');
  publish("m.gguf", content, true);
  const auto old_action = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low = before;
  low.rlim_cur = 100000;
  setrlimit(RLIMIT_FSIZE, &low);
  const auto pulled = pull_model("u/r");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_action);
  ASSERT_FALSE(pulled);
  EXPECT_NE(pulled.error().message.find(".incomplete': cannot write it: File too large"), std::string::npos)
      << pulled.error().message;
  EXPECT_EQ(bytes_in(blobs()), 100000u);
  EXPECT_TRUE(list_models(root()).empty());
  const auto again = pull_model("u/r");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(read_text(again->path), content);
}

TEST_F(Hub, two_models_never_share_a_folder) {
  for (const char* name : {"a--b/c", "a/b--c", "a-/b", "a/-b", "-a/b", ".a/b", "a/b.", "a/b..c"}) {
    EXPECT_FALSE(parse_repo_name(name)) << name;
  }
  for (const char* name : {"a-b/c_d.e-f", "a/b:Q4--K"}) EXPECT_TRUE(parse_repo_name(name)) << name;
}

TEST_F(Hub, names_that_leave_the_folder_are_never_asked_for) {
  publish("../../evil.gguf", "x", true);
  EXPECT_FALSE(pull_model("u/r"));
  EXPECT_FALSE(std::filesystem::exists(root().parent_path() / "evil.gguf"));
  for (const char* name : {"", "u", "u/", "/r", "u/../r", "../r", "u/r:", "u/r:a/b", "u/r r"}) {
    EXPECT_FALSE(parse_repo_name(name)) << name;
  }
}

TEST_F(Hub, what_the_hub_lacks_is_named) {
  const auto pulled = pull_model("u/r");
  EXPECT_NE(pulled.error().message.find("does not exist"), std::string::npos) << pulled.error().message;
}

TEST(digest, is_that_of_other_tools) {
  const TempFolder folder;
  const auto path = folder.file("abc", std::string_view("abc"));
  EXPECT_EQ(*sha256_of_file(path), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*git_sha1_of_file(path), "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f");
}

}  // namespace
}  // namespace candor::hub
