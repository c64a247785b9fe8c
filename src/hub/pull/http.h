#pragma once
// HTTP GET for downloads, over net/http_client.h. One object, one thread; connections are reused. Redirects are
// followed; credentials never leave the host that they were given for.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "hub/pull/partial_file.h"
#include "net/http_client.h"

namespace candor::hub {

// Called now and then with the bytes of the file that are there and in all (0 = unknown); false stops the transfer.
using TransferProgress = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;

class HttpClient {
 public:
  // token: sent as a bearer token; "" for none.
  explicit HttpClient(std::string token) : token_(std::move(token)) {}

  // The body of a 200, at most 16 MiB.
  Result<std::string> get(const std::string& url);
  // Appends to `file` what is missing behind the bytes that it has. A server that cannot resume sends all: the file is
  // then begun anew. Not a byte beyond max_bytes is written: a server that sends more is an error.
  Result<void> download(const std::string& url, PartialFile& file, uint64_t max_bytes,
                        const TransferProgress& progress);

 private:
  std::string token_;
  client::HttpClient client_;
};

}  // namespace candor::hub
