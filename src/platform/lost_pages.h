#pragma once
// Mapped files of which pages are lost: another program has cut the file, or its disk fails. Reading such a page raises
// SIGBUS, which would end the process. While a range is guarded, its lost pages read as zeros instead and the range
// says that it is lost; whoever reads asks before trusting what was read. A SIGBUS anywhere else goes to the handler
// that was there before ours, or ends the process as it always did.
// The handler is installed once, when the first range is guarded. A program that installs one of its own later, without
// passing on what it does not know, takes this protection away and is otherwise not disturbed.

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
