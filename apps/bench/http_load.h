#pragma once
// Puts a load on a server that speaks OpenAI's API, over HTTP, and notes when every piece of text came. Definitions as
// in vLLM's benchmark: TTFT ends with the first chunk that carries text; a chunk is a token; the number of tokens is
// what the server counts in its usage.

#include <cstdint>
#include <string>

#include "apps/bench/load.h"
#include "apps/bench/load_run.h"
#include "base/error.h"

namespace candor::apps {

struct RemoteServer {
  std::string url{};  // without a '/' at the end: "http://127.0.0.1:8080"
  std::string key{};  // sent as a bearer token; "" = none
  std::string model{};
  int32_t n_ctx = 0;    // 0 = it does not say
  int32_t n_vocab = 0;  // 0 = it does not say: prompts are then text of about as many tokens
};

// Asks the server which models it has. model: "" = its first.
Result<RemoteServer> find_server(const std::string& url, const std::string& key, const std::string& model);

// As run_load(): greedy, to the full length, streamed. One thread.
LoadRun run_http_load(const RemoteServer& server, const Load& load, const LoadRunOptions& options);

}  // namespace candor::apps
