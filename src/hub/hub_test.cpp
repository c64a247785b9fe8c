// pull and list against a hub of our own: a server on a local port that speaks as much of the protocol as is used.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "hub/digest.h"
#include "hub/pull.h"
#include "support/temp_folder.h"

namespace candor::hub {
namespace {

using candor::testing::TempFolder;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

// Answers GET with what stands under the path; understands "Range: bytes=N-". One thread of its own.
class MockHub {
 public:
  MockHub() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~MockHub() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    close(listener_);
    thread_.join();
  }

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Set before pulling.
  std::map<std::string, std::string> pages;
  size_t cut_after = std::string::npos;  // the connection breaks after so many bytes of a body
  bool can_resume = true;
  // Read after pulling.
  std::vector<std::string> requests;

 private:
  void serve() {
    while (!stopping_) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      answer(peer);
      close(peer);
    }
  }

  void answer(int peer) {
    std::string request;
    char buffer[4096];
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t n = read(peer, buffer, sizeof(buffer));
      if (n <= 0) return;
      request.append(buffer, static_cast<size_t>(n));
    }
    requests.push_back(request);
    const std::string path = request.substr(4, request.find(' ', 4) - 4);
    const auto page = pages.find(path);
    if (page == pages.end()) return send(peer, "404 Not Found", "");
    size_t begin = 0;
    const size_t range = request.find("Range: bytes=");
    if (can_resume && range != std::string::npos) begin = std::stoul(request.substr(range + 13));
    if (begin >= page->second.size() && begin > 0) return send(peer, "416 Range Not Satisfiable", "");
    send(peer, begin > 0 ? "206 Partial Content" : "200 OK", page->second.substr(begin));
  }

  void send(int peer, const std::string& status, const std::string& body) {
    std::string answer =
        "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
    answer += body.substr(0, body.starts_with("{") ? std::string::npos : cut_after);
    for (size_t at = 0; at < answer.size();) {
      const ssize_t n = ::send(peer, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<size_t>(n);
    }
  }

  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

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

  Expected<PulledModel> pull_model(const std::string& name) {
    return pull(*parse_repo_name(name), {hub_.endpoint(), root(), "secret"}, {});
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

TEST_F(Hub, a_folder_of_safetensors_comes_with_what_stands_beside_it) {
  publish("config.json", "{}", false);
  publish("model.safetensors", "weights", true);
  publish("pytorch_model.bin", "pickle", true);
  const auto pulled = pull_model("u/r");
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read_text(pulled->path / "model.safetensors"), "weights");
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
