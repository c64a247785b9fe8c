#pragma once
// A batch's output: one line for each answered request. Lines are appended whole; a last one that is torn, because the
// process was killed or the disk was full, is removed when the file is opened again. While one is open, no other
// process opens it (a lock of the file). One thread.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace candor::serve {

struct BatchAnswer {
  std::string_view custom_id;
  uint64_t digest = 0;  // of the request
  int status = 0;
  std::string_view body;      // JSON without a line break
  std::string_view warnings;  // a JSON list of what had no effect; empty: none
};

class BatchOutput {
 public:
  // Created where it is not there. Refuses a file that holds anything but answers of a batch, and leaves it as it is.
  // drops_errors: lines with an error are removed (the file is written anew, whole or not at all).
  static Result<BatchOutput> open(const std::filesystem::path& path, bool drops_errors = false);

  BatchOutput(BatchOutput&& other) noexcept;
  BatchOutput& operator=(BatchOutput&&) = delete;
  ~BatchOutput();

  // What the file held when it was opened: custom_id -> digest of the request.
  const std::unordered_map<std::string, uint64_t>& answered() const { return answered_; }
  size_t n_errors() const { return n_errors_; }  // of them
  // After an error the file holds the lines before this one.
  Result<void> append(const BatchAnswer& answer);
  // To the disk.
  Result<void> flush();

 private:
  BatchOutput(int file, std::filesystem::path path) : file_(file), path_(std::move(path)) {}
  static Result<BatchOutput> open_once(const std::filesystem::path& path);
  Result<void> read_answered();
  Result<void> write_without_errors() const;
  Error cannot(int error) const;

  int file_;  // -1: moved away
  std::filesystem::path path_;
  uint64_t size_ = 0;
  std::unordered_map<std::string, uint64_t> answered_;
  size_t n_errors_ = 0;  // of the lines that were there
};

}  // namespace candor::serve
