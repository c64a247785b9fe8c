#pragma once
// Batches of a server (OpenAI's /v1/batches): what clients ordered, in a folder that outlives the server. One thread
// answers one batch after the other, in the order in which they came, through the server's own handler; a batch that
// the server's end interrupted goes on at its next start.
//
// start() once, before any other thread asks; stop() at any time. Everything else: any thread.

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "serve/batch/batch.h"
#include "serve/batch/file_store.h"
#include "serve/core/json_body.h"
#include "serve/http/server.h"

namespace candor::serve {

struct BatchStoreOptions {
  std::filesystem::path folder;
  int32_t n_at_once = 8;  // requests of a batch, beside those of clients
  std::string model{};    // BatchOptions
};

enum class BatchStatus : uint8_t { kValidating, kInProgress, kCompleted, kFailed, kCancelled };

struct BatchOrder {
  std::string id;  // "batch_" and 32 digits
  std::string owner;
  std::string input_file;
  std::string output_file{};  // empty: not begun
  std::string url;            // that every line asks
  Json metadata{};
  BatchStatus status = BatchStatus::kValidating;
  bool is_cancelling = false;
  int64_t created = 0;
  int64_t begun = 0;
  int64_t ended = 0;
  uint64_t n_lines = 0;
  uint64_t n_done = 0;
  uint64_t n_failed = 0;
  std::string fault{};  // why it failed
};

class BatchStore {
 public:
  static Result<std::unique_ptr<BatchStore>> open(const BatchStoreOptions& options);
  ~BatchStore() { stop(); }

  // key_of: the number of the API key with that digest, -1 where there is none.
  void start(http::Handler& handler, std::function<int32_t(const std::string& owner)> key_of);
  // What is in work is dropped, and goes on another time.
  void stop();

  FileStore& files() { return *files_; }
  Result<BatchOrder> add(BatchOrder order);
  // Newest first.
  std::vector<BatchOrder> list(const std::string& owner) const;
  std::optional<BatchOrder> find(const std::string& owner, const std::string& id) const;
  // As it is then; one that has ended stays so.
  std::optional<BatchOrder> cancel(const std::string& owner, const std::string& id);

  static constexpr size_t kMaxOrders = 10'000;

 private:
  BatchStore(BatchStoreOptions options, std::unique_ptr<FileStore> files)
      : options_(std::move(options)), files_(std::move(files)) {}
  void read_folder();
  void work(const std::stop_token& stop);
  void answer(const std::string& id, const std::stop_token& stop);
  Result<BatchOptions> begin(const std::string& id);
  void end(const std::string& id, const Result<void>& result, bool is_complete, const std::stop_token& stop);
  // REQUIRES: mutex_ is held.
  Result<void> make_room(const std::string& owner);
  Result<void> keep(const BatchOrder& order) const;

  const BatchStoreOptions options_;
  const std::unique_ptr<FileStore> files_;
  http::Handler* handler_ = nullptr;
  std::function<int32_t(const std::string&)> key_of_;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, BatchOrder> orders_;  // by id; guarded by mutex_
  std::jthread worker_;
};

// As OpenAI's clients know a batch.
Json to_json(const BatchOrder& order);

}  // namespace candor::serve
