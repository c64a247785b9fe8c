#pragma once
// Files that clients upload, and those that batches write for them, in a folder: ID.jsonl with the bytes and ID.json
// with what is known of it. Each belongs to the API key that brought it (`owner`, a digest of the key; empty where
// there are no keys), and nobody else sees it. Any thread.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/core/json_body.h"

namespace candor::serve {

struct StoredFile {
  std::string id;  // "file-" and 32 digits that nobody guesses
  std::string owner;
  std::string name;
  std::string purpose;
  int64_t created = 0;  // seconds since 1970
};

// PREFIX and 32 random hexadecimal digits.
std::string new_id(std::string_view prefix);

class FileStore {
 public:
  static constexpr size_t kMaxFiles = 10'000;
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 30;  // of all files
  static constexpr size_t kShares = 4;                       // of both; one key has one of them at most

  // Makes the folder where it is not there. Files without a readable ID.json are left alone.
  static Result<std::unique_ptr<FileStore>> open(const std::filesystem::path& folder);

  Result<StoredFile> add(StoredFile file, std::string_view bytes);
  // Newest first.
  std::vector<StoredFile> list(const std::string& owner) const;
  std::optional<StoredFile> find(const std::string& owner, const std::string& id) const;
  // False where there is none of that id.
  bool remove(const std::string& owner, const std::string& id);

  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".jsonl"); }
  // As OpenAI's clients know a file.
  Json to_json(const StoredFile& file) const;

 private:
  explicit FileStore(std::filesystem::path folder) : folder_(std::move(folder)) {}
  struct Amount {
    size_t n_files = 0;
    uint64_t n_bytes = 0;
    void add(uint64_t bytes) {
      ++n_files;
      n_bytes += bytes;
    }
  };
  struct Held {
    Amount all;
    Amount own;
  };
  // REQUIRES: mutex_ is held.
  Held held(const std::string& owner) const;
  void read_folder();

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<std::string, StoredFile> files_;  // by id; guarded by mutex_
};

}  // namespace candor::serve
