#include "sandbox/helper_process.h"

#include <candor_bridge.h>
#include <candor_helper.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "platform/spawn_plan.h"

namespace candor::sandbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

static_assert(static_cast<int>(HelperStatus::kBusy) == CANDOR_BUSY);
static_assert(sizeof(candor_helper_request) == 8 && sizeof(candor_helper_reply) == 12);

// The program's descriptor in the helper; the helper closes it.
constexpr int kProgramNumber = 1;

// Two descriptors, no environment but where libraries lie.
int spawn(const Descriptor& program, const Descriptor& socket, pid_t& pid) {
  platform::SpawnPlan plan;
  plan.give(socket.number(), STDIN_FILENO);
  plan.give(program.number(), kProgramNumber);
  plan.close_from(kProgramNumber + 1);
  const char* libraries = std::getenv("LD_LIBRARY_PATH");
  std::vector<std::string> environment;
  if (libraries != nullptr) environment.push_back(fmt::format("LD_LIBRARY_PATH={}", libraries));
  return plan.start(fmt::format("/proc/self/fd/{}", kProgramNumber), {"candor-helper"}, std::move(environment), pid);
}

Error cannot_start(int code) {
  const bool lacks_room = code == EAGAIN || code == ENOMEM || code == EMFILE || code == ENFILE;
  const char* remedy = lacks_room ? "raise the limits on processes, memory or open files"
                                  : "it needs /proc, and a memfd or a temporary folder that programs may run from";
  return {lacks_room ? ErrorKind::kOutOfMemory : ErrorKind::kIo,
          fmt::format("the helper process cannot be started: {}; {}", std::strerror(code), remedy)};
}

HelperReply limit_reply(std::string text) {
  return {.status = HelperStatus::kLimit, .text = std::move(text), .is_end = true};
}

std::optional<nanoseconds> read_clock(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return std::nullopt;  // its process has ended
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

// What is left of a request's two times.
class HelperProcess::Stopwatch {
 public:
  Stopwatch(pid_t pid, const TimeLimits& limits) : end_(std::chrono::steady_clock::now() + limits.clock) {
    if (::clock_getcpuclockid(pid, &clock_) != 0) return;
    processor_end_ = read_clock(clock_);
    if (processor_end_) *processor_end_ += limits.processor;
  }

  nanoseconds processor_left() const {
    const auto now = processor_end_ ? read_clock(clock_) : std::nullopt;
    return now ? *processor_end_ - *now : nanoseconds::max();
  }
  nanoseconds left() const { return end_ - std::chrono::steady_clock::now(); }

 private:
  clockid_t clock_{};
  std::optional<nanoseconds> processor_end_;
  SteadyTime end_;
};

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(const Descriptor& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return cannot_start(errno);
  Descriptor mine(ends[0]);
  Descriptor its(ends[1]);
  mine.raise();
  its.raise();
  if (!mine || !its) return cannot_start(EMFILE);
  pid_t pid = -1;
  if (const int code = spawn(program, its, pid); code != 0) return cannot_start(code);
  its = Descriptor();
  std::unique_ptr<HelperProcess> helper(new HelperProcess(pid, std::move(mine)));
  HelperReply hello;
  if (helper->receive(0, Stopwatch(pid, {}), hello) == Outcome::kDone && hello.status == HelperStatus::kOk)
    return helper;
  helper->kill();
  const int status = helper->reap();
  const bool has_code = status >= 0 && WIFEXITED(status);
  return fail(ErrorKind::kIo,
              fmt::format("the helper process ended while it was starting{}: does it find libgcc_s.so.1?",
                          has_code ? fmt::format(" (status {})", WEXITSTATUS(status)) : ""));
}

HelperProcess::~HelperProcess() {
  kill();
  reap();
}

bool HelperProcess::is_usable() const {
  pollfd socket{.fd = socket_.number(), .events = POLLIN, .revents = 0};
  return is_usable_ && ::poll(&socket, 1, 0) == 0;
}

void HelperProcess::kill() {
  const std::lock_guard lock(mutex_);
  if (pid_ > 0) ::kill(-pid_, SIGKILL);  // its group
}

// A process that has closed its socket ends at once, or else is ended.
void HelperProcess::wait_for_end() {
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    siginfo_t info{};
    const int code = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG);
    if ((code == 0 && info.si_pid == pid_) || (code != 0 && errno != EINTR)) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  kill();
}

int HelperProcess::reap() {
  is_usable_ = false;
  if (pid_ < 0) return -1;
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  const std::lock_guard lock(mutex_);
  int status = -1;
  const bool is_known = ::waitpid(pid_, &status, 0) == pid_;
  pid_ = -1;
  return is_known ? status : -1;
}

HelperProcess::Outcome HelperProcess::wait_for(short events, const Stopwatch& watch) const {
  constexpr nanoseconds kShortest = milliseconds(5);
  while (true) {
    const nanoseconds processor_left = watch.processor_left();
    const nanoseconds left = watch.left();
    pollfd socket{.fd = socket_.number(), .events = events, .revents = 0};
    const bool is_over = processor_left <= nanoseconds(0) || left <= nanoseconds(0);
    const nanoseconds pause = is_over ? nanoseconds(0) : std::max(kShortest, std::min(processor_left, left));
    const timespec timeout{.tv_sec = pause.count() / 1'000'000'000, .tv_nsec = pause.count() % 1'000'000'000};
    if (::ppoll(&socket, 1, &timeout, nullptr) > 0) return Outcome::kDone;
    if (processor_left <= nanoseconds(0)) return Outcome::kWorkedTooLong;
    if (left <= nanoseconds(0)) return Outcome::kTookTooLong;
  }
}

HelperProcess::Outcome HelperProcess::send_all(std::string_view bytes, const Stopwatch& watch) const {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    if (n >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Outcome::kEnded;
    if (const Outcome outcome = wait_for(POLLOUT, watch); outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

HelperProcess::Outcome HelperProcess::receive_all(char* data, size_t size, const Stopwatch& watch) const {
  for (size_t at = 0; at < size;) {
    const ssize_t n = ::recv(socket_.number(), data + at, size - at, MSG_DONTWAIT);
    if (n == 0) return Outcome::kEnded;
    if (n > 0) at += static_cast<size_t>(n);
    if (n > 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Outcome::kEnded;
    if (const Outcome outcome = wait_for(POLLIN, watch); outcome != Outcome::kDone) return outcome;
  }
  return Outcome::kDone;
}

HelperProcess::Outcome HelperProcess::receive(uint8_t kind, const Stopwatch& watch, HelperReply& reply) {
  candor_helper_reply head{};
  Outcome outcome = receive_all(reinterpret_cast<char*>(&head), sizeof head, watch);
  if (outcome != Outcome::kDone) return outcome;
  const bool is_image = kind == CANDOR_HELPER_IMAGE && head.status == CANDOR_OK;
  const uint32_t most_bytes = is_image ? CANDOR_HELPER_MOST_IMAGE_BYTES : CANDOR_HELPER_MOST_BYTES;
  if (head.size > most_bytes || head.status > CANDOR_BUSY || head.is_worn > 1) return Outcome::kBroken;
  reply = {.status = static_cast<HelperStatus>(head.status), .line = head.line};
  reply.text.resize(head.size);
  outcome = receive_all(reply.text.data(), reply.text.size(), watch);
  is_usable_ = outcome == Outcome::kDone && head.is_worn == 0;
  return outcome;
}

HelperProcess::Outcome HelperProcess::converse(const HelperRequest& request, const Stopwatch& watch,
                                               HelperReply& reply) {
  const candor_helper_request head{.size = static_cast<uint32_t>(request.bytes.size()),
                                   .kind = request.kind,
                                   .slot = request.slot,
                                   .detail = request.detail,
                                   .zero = 0};
  Outcome outcome = send_all({reinterpret_cast<const char*>(&head), sizeof head}, watch);
  if (outcome == Outcome::kDone) outcome = send_all(request.bytes, watch);
  return outcome == Outcome::kDone ? receive(request.kind, watch, reply) : outcome;
}

Result<HelperReply> HelperProcess::ask(const HelperRequest& request, const TimeLimits& limits) {
  if (request.bytes.size() > CANDOR_HELPER_MOST_BYTES) {
    return limit_reply(fmt::format("has {} bytes, more than {}", request.bytes.size(), CANDOR_HELPER_MOST_BYTES));
  }
  HelperReply reply;
  const Outcome outcome = converse(request, Stopwatch(pid_, limits), reply);
  if (outcome != Outcome::kDone) return conclude(outcome, request.kind, limits);
  return reply;
}

Result<HelperReply> HelperProcess::conclude(Outcome outcome, uint8_t kind, const TimeLimits& limits) {
  outcome == Outcome::kEnded ? wait_for_end() : kill();
  const int status = reap();
  if (outcome == Outcome::kWorkedTooLong) {
    return limit_reply(fmt::format("takes more than {} ms of processor time", limits.processor.count()));
  }
  if (outcome == Outcome::kTookTooLong) {
    return fail(ErrorKind::kBusy,
                fmt::format("not done within {} s: the machine is busy; try again later", limits.clock.count() / 1000));
  }
  if (outcome == Outcome::kBroken) return fail(ErrorKind::kInternal, "a helper process wrote what is no reply");
  if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == CANDOR_HELPER_OUT_OF_MEMORY) {
    const uint32_t most_bytes = kind == CANDOR_HELPER_IMAGE ? CANDOR_HELPER_IMAGE_JOB_BYTES : CANDOR_HELPER_JOB_BYTES;
    return limit_reply(fmt::format("needs more than {} MiB of memory", most_bytes >> 20));
  }
  if (status >= 0 && WIFEXITED(status)) {
    return fail(ErrorKind::kInternal, fmt::format("a helper process ended with status {}", WEXITSTATUS(status)));
  }
  if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
    return limit_reply(fmt::format("ended its helper process by signal {}: it is nested too deep", WTERMSIG(status)));
  }
  return fail(ErrorKind::kOutOfMemory,
              "the helper process was killed by another one: is memory short? Try again later");
}

}  // namespace candor::sandbox
