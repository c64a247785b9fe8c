#pragma once
// Work on what others wrote (a model's chat template, a client's constraint or image), done in helper processes with
// limits on time and memory: whatever happens there is one reply here. Helpers are started when they are needed, do one
// job at a time, and are started again when they have ended. Any thread may ask; who finds all of them busy waits, at
// most for the limit. Nothing of a job goes on once its caller has the answer.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sandbox/helper_process.h"
#include "sandbox/helper_program.h"

namespace candor::sandbox {

// What helpers hold for later jobs: a template's source, a vocabulary in the form of candor_helper.h.
struct HelperAsset {
  enum class Kind : uint8_t { kTemplate, kVocabulary };
  Kind kind = Kind::kTemplate;
  std::string bytes{};
};
using SharedAsset = std::shared_ptr<const HelperAsset>;

// RGB of 8 bits, row by row from the top, as the reply holds them.
struct DecodedImage {
  int32_t width = 0;
  int32_t height = 0;
  std::string reply{};

  std::span<const uint8_t> rgb() const;
};

struct HelperOptions {
  int32_t max_helpers = 4;
  TimeLimits job{};
  TimeLimits vocabulary{.processor = std::chrono::seconds(20), .clock = std::chrono::seconds(60)};  // to prepare it
  TimeLimits image{.processor = std::chrono::seconds(8), .clock = std::chrono::seconds(30)};
  std::span<const std::byte> program{};  // empty: the one that is linked in
};

class HelperPool {
 public:
  HelperPool();
  explicit HelperPool(const HelperOptions& options);
  // REQUIRES: no call is in work; stop() ends them.
  ~HelperPool();
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  // A reply whose status is an error is the input's fault. An Error is ours, or the machine's: kBusy when no helper is
  // free, or done, in time; kCancelled after stop(); kOutOfMemory and kIo as HelperProcess has them.
  Result<HelperReply> compile_template(const SharedAsset& source);
  Result<HelperReply> render(const SharedAsset& source, std::string_view context_json, int64_t now_seconds);
  // kind: candor_grammar_kind. At most half of the helpers try constraints or decode images at the same time: others
  // can always chat.
  Result<HelperReply> try_constraint(const SharedAsset& vocabulary, uint8_t kind, std::string_view source);
  // file: JPEG, PNG, WebP, GIF (its first frame) or BMP, of at most 64 Mi pixels. What is wrong with the file, or with
  // its size, is an error as well, one line that names the format: kInvalidInput or kUnsupported.
  Result<DecodedImage> decode_image(std::string_view file);

  // Ends what is in work, and refuses what comes: kCancelled.
  void stop();

 private:
  struct Helper;
  class Lease;
  struct Job {
    const SharedAsset& asset;  // may be none
    HelperRequest request{};   // kind 0: the asset alone
    bool is_trial = false;
  };

  Result<HelperReply> run(const Job& job);
  Result<HelperReply> run_on(Helper& helper, const Job& job);
  const TimeLimits& limits_of(const HelperRequest& request) const;
  Result<size_t> provide(Helper& helper, const SharedAsset& asset, HelperReply& refusal);
  Result<void> start(Helper& helper);
  Result<std::unique_ptr<HelperProcess>> start_process();
  Result<std::unique_ptr<Helper>> take(const Job& job);
  void give_back(std::unique_ptr<Helper> helper, bool is_trial);
  Error stopped() const;

  const HelperOptions options_;
  std::mutex program_mutex_;
  Descriptor program_;  // guarded by program_mutex_; the one that could be executed

  std::mutex mutex_;
  std::condition_variable freed_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<Helper>> idle_;  // the one that worked last stands last
  std::vector<HelperProcess*> busy_;           // what stop() ends
  int32_t n_jobs_ = 0;
  int32_t n_trials_ = 0;
  bool is_stopped_ = false;
};

}  // namespace candor::sandbox
