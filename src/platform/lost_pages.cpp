#include "platform/lost_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace candor::platform {

// Entries are used again and never freed: the handler walks them while others come and go.
struct GuardedRange {
  std::atomic<uint32_t> changes{0};  // odd while begin and end are being set
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};  // equal to begin: free
  std::atomic<bool> is_lost{false};
  GuardedRange* next = nullptr;  // constant once the entry is in the list
};

namespace {

// What a signal handler works on can only be reached from here: it is given nothing but an address.
std::atomic<GuardedRange*> first_range{nullptr};
std::mutex list_mutex;
uintptr_t page_bytes = 0;          // set before the handler is installed
struct sigaction handler_before {};  // the same

void set_range(GuardedRange& range, uintptr_t begin, uintptr_t end) {
  range.changes.fetch_add(1);
  range.begin.store(begin);
  range.end.store(end);
  range.changes.fetch_add(1);
}

struct Extent {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// Empty while it is being set: what another thread has at hand is not being set.
Extent extent_of(const GuardedRange& range) {
  const uint32_t before = range.changes.load();
  const Extent extent{range.begin.load(), range.end.load()};
  return before % 2 == 0 && range.changes.load() == before ? extent : Extent{};
}

// From the page that was read to the range's end: what lies behind a cut is lost with it. Calls only what a signal
// handler may: atomics without locks, and mmap, which is a bare system call.
bool replace_lost_pages(uintptr_t address) {
  for (GuardedRange* range = first_range.load(); range != nullptr; range = range->next) {
    const Extent extent = extent_of(*range);
    if (address < extent.begin || address >= extent.end) continue;
    range->is_lost.store(true);
    const uintptr_t page = address / page_bytes * page_bytes;
    return ::mmap(reinterpret_cast<void*>(page), extent.end - page, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0) != MAP_FAILED;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((handler_before.sa_flags & SA_SIGINFO) != 0) return handler_before.sa_sigaction(signal, info, context);
  if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN) {
    return handler_before.sa_handler(signal);
  }
  // As without us: a fault is raised again by the instruction that we return to, a signal that was sent is sent again.
  const bool was_sent = info->si_code <= 0;
  if (was_sent && handler_before.sa_handler == SIG_IGN) return;
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  ::sigaction(signal, &fatal, nullptr);
  if (was_sent) ::raise(signal);
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool is_ours = info->si_code == BUS_ADRERR && replace_lost_pages(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!is_ours) pass_on(signal, info, context);
  errno = saved;
}

void install_handler() {
  page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  ::sigaction(SIGBUS, nullptr, &handler_before);
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&ours.sa_mask);
  ::sigaction(SIGBUS, &ours, nullptr);
}

// REQUIRES: list_mutex is held.
GuardedRange& free_range() {
  for (GuardedRange* range = first_range.load(); range != nullptr; range = range->next) {
    if (range->begin.load() == range->end.load()) return *range;
  }
  auto* range = new GuardedRange;
  range->next = first_range.load();
  first_range.store(range);
  return *range;
}

}  // namespace

RangeGuard guard_range(std::span<const std::byte> bytes) {
  const std::lock_guard lock(list_mutex);
  if (page_bytes == 0) install_handler();
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t whole_pages = (bytes.size() + page_bytes - 1) / page_bytes * page_bytes;
  GuardedRange& range = free_range();
  range.is_lost.store(false);
  set_range(range, begin, begin + whole_pages);
  return RangeGuard(&range);
}

bool is_lost(const GuardedRange& range) noexcept {
  return range.is_lost.load();
}

void EndGuard::operator()(GuardedRange* range) const noexcept {
  const std::lock_guard lock(list_mutex);
  set_range(*range, 0, 0);
}

}  // namespace candor::platform
