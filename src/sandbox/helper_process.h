#pragma once
// One child process that does untrusted work (renders a chat template, compiles a constraint, decodes an image):
// started, asked one request at a time over a socket (bridge/include/candor_helper.h), and killed when it exceeds its
// limits. Its time is its own processor time, so that the verdict does not depend on the load of the machine.
//
// Used by one thread at a time, except kill(). Destroying the object kills and reaps the process.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "sandbox/helper_program.h"

namespace candor::sandbox {

// The numbers of candor_status.
enum class HelperStatus : uint8_t { kOk, kInvalid, kRaised, kLimit, kUnsupported, kInternal, kBusy };

struct HelperReply {
  HelperStatus status = HelperStatus::kOk;
  uint32_t line = 0;    // of a template, where an error has one
  std::string text{};   // or the error's message
  bool is_end = false;  // what the job did to its helper, in words that want a subject
};

struct HelperRequest {
  uint8_t kind = 0;  // candor_helper_kind
  uint8_t slot = 0;
  uint8_t detail = 0;
  std::string_view bytes{};
};

struct TimeLimits {
  std::chrono::milliseconds processor{2'000};  // of the helper
  std::chrono::milliseconds clock{10'000};     // of the wall
};

class HelperProcess {
 public:
  // kOutOfMemory where the system has no room for a process, kIo where it does not execute the program.
  static Result<std::unique_ptr<HelperProcess>> start(const Descriptor& program);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  // A helper that takes more processor time or memory than it may, or that breaks, is killed, and the reply says so
  // (kLimit). Errors: kBusy when it exceeded the wall clock limit but not its processor time, kOutOfMemory when another
  // process (the kernel, say) killed it.
  Result<HelperReply> ask(const HelperRequest& request, const TimeLimits& limits);
  // False once the process has ended, for any reason, or is worn out: start another one.
  bool is_usable() const;
  // From any thread, also while another one asks.
  void kill();

 private:
  class Stopwatch;
  enum class Outcome : uint8_t { kDone, kWorkedTooLong, kTookTooLong, kBroken, kEnded };

  HelperProcess(pid_t pid, Descriptor socket) : pid_(pid), socket_(std::move(socket)) {}
  Outcome converse(const HelperRequest& request, const Stopwatch& watch, HelperReply& reply);
  Outcome wait_for(short events, const Stopwatch& watch) const;
  Outcome send_all(std::string_view bytes, const Stopwatch& watch) const;
  Outcome receive_all(char* data, size_t size, const Stopwatch& watch) const;
  // kind: of the request that is replied to; 0: none.
  Outcome receive(uint8_t kind, const Stopwatch& watch, HelperReply& reply);
  // What is to be said of a helper that is none any more; ends it.
  Result<HelperReply> conclude(Outcome outcome, uint8_t kind, const TimeLimits& limits);
  void wait_for_end();
  // Its status as waitpid gives it; -1 where another part of this program took that.
  int reap();

  std::mutex mutex_;  // guards pid_ against kill()
  pid_t pid_;         // -1 once reaped
  Descriptor socket_;
  bool is_usable_ = true;
};

}  // namespace candor::sandbox
