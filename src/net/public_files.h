#pragma once
// Small files of the public internet, on behalf of somebody who may reach nothing else through us: http and https
// alone, public addresses alone (also behind redirects; the connection goes to the address that was checked, so that a
// name cannot change meanwhile), no proxy, few redirects, and limits on bytes and time.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "net/addresses.h"

namespace candor::client {

struct PublicFileRules {
  std::string type = "image/";  // what Content-Type begins with
  size_t most_bytes = size_t{20} << 20;
  std::chrono::milliseconds at_most{10'000};
  int max_redirects = 3;
  int32_t n_at_once = 1;  // over all requests; beyond: kBusy
  AddressCheck may_reach = is_public_address;
};

// Any thread.
class PublicFileDoor {
 public:
  explicit PublicFileDoor(PublicFileRules rules) : rules_(std::move(rules)) {}

 private:
  friend class PublicFiles;
  const PublicFileRules rules_;
  std::atomic<int32_t> n_open_{0};
};

// The files of one request: bytes and time count for all of them together. One thread.
class PublicFiles {
 public:
  explicit PublicFiles(std::shared_ptr<PublicFileDoor> door);
  // Blocks. Errors are one line, without the host's address.
  Result<std::string> fetch(const std::string& url);

 private:
  Result<std::string> fetch_now(const std::string& url);

  const std::shared_ptr<PublicFileDoor> door_;
  size_t bytes_left_;
  std::chrono::steady_clock::duration time_left_;
};

}  // namespace candor::client
