#pragma once
// Keeps reads of mapped files from ending the process when a page is lost: another program has truncated the file, or
// its disk fails, and a read raises SIGBUS. In a guarded range the lost pages, and all behind them, read as zeros, and
// is_lost() becomes true: the reader calls it before it trusts what it has read.
//
// The SIGBUS handler is installed when the first range is guarded. A SIGBUS elsewhere goes to the handler that was
// installed before, or ends the process as usual. A handler that the program installs later, and that does not pass on
// what it does not know, disables this protection and nothing else.

#include <cstddef>
#include <memory>
#include <span>

namespace candor::platform {

struct GuardedRange;

// Ends the guard. REQUIRES: nobody reads the range any more, and it is still mapped.
struct EndGuard {
  void operator()(GuardedRange* range) const noexcept;
};
using RangeGuard = std::unique_ptr<GuardedRange, EndGuard>;

// bytes: a whole private file mapping, from its first page on. Any thread.
RangeGuard guard_range(std::span<const std::byte> bytes);

// A page of the range was lost when somebody read it.
bool is_lost(const GuardedRange& range) noexcept;

}  // namespace candor::platform
