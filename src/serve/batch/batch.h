#pragma once
// A batch: every request of a file is answered once, through the handler that a server answers with, so that answers
// are a server's bit for bit. What an output file holds already is not asked again.
//
// run() is called by one thread, which writes the output; the handler's threads only wake it.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/error.h"
#include "serve/batch/batch_output.h"
#include "serve/http/server.h"

namespace candor::serve {

struct BatchOptions {
  std::filesystem::path input;
  std::filesystem::path output;
  int32_t n_at_once = 16;
  bool in_order = false;        // of the input; otherwise as requests end
  bool retries_errors = false;  // requests whose answer in the output is an error are asked again
  uint64_t seed = 0;            // BatchLine
  std::string url{};            // that every request asks; empty: each its own
  int32_t key = -1;             // in whose name the handler is asked
  std::string model{};          // which answers: a change of it is another batch
};

struct BatchCounts {
  size_t n_lines = 0;   // requests of the input
  size_t n_before = 0;  // that the output held when the batch was opened
  size_t n_failed_before = 0;
  size_t n_done = 0;    // now, with an answer or an error
  size_t n_failed = 0;  // of them, those with an error
  uint64_t n_prompt_tokens = 0;
  uint64_t n_answer_tokens = 0;
};

class Batch {
 public:
  // Reads both files: every line is checked before the first is asked. Refuses, by their lines, requests that are none,
  // names that appear twice, and an output that answers other requests.
  static Result<Batch> open(const BatchOptions& options);

  // Until every request has its line, or goes_on says no (asked after each answer, and ten times a second); what is
  // then in work is dropped. Fails where the output cannot be written, or the input has changed.
  Result<void> run(http::Handler& handler, const std::function<bool(const BatchCounts&)>& goes_on);
  const BatchCounts& counts() const { return counts_; }
  bool is_complete() const { return counts_.n_before + counts_.n_done == counts_.n_lines; }

 private:
  Batch(BatchOptions options, BatchOutput output) : options_(std::move(options)), output_(std::move(output)) {}
  Result<void> check_input();

  BatchOptions options_;
  BatchOutput output_;
  BatchCounts counts_;
};

}  // namespace candor::serve
