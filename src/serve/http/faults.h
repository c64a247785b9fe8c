#pragma once
// Logs and counts exceptions that reached the last handler that can catch them: on the network thread, in a worker's
// task, or while a reply is made. Each ends only one connection or one request. Any thread.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string_view>

#include "obs/log.h"
#include "serve/http/message.h"

namespace candor::http {

enum class FaultPlace : uint8_t { kNetwork, kAccept, kConnection, kWebSocket, kHandler, kWorker, kReply };
inline constexpr size_t kFaultPlaces = 7;
// "network", "accept", ...
std::string_view place_name(FaultPlace place);

class Faults {
 public:
  // The log is borrowed.
  explicit Faults(const obs::Log& log) : log_(log) {}

  void note(FaultPlace place, const std::exception_ptr& fault) noexcept;
  uint64_t count(FaultPlace place) const { return counts_[static_cast<size_t>(place)]; }

 private:
  const obs::Log& log_;
  std::array<std::atomic<uint64_t>, kFaultPlaces> counts_{};
};

// What the client is told: 503 where memory ran out, else 500.
Error error_of(const std::exception_ptr& fault);
// Without words where there is no memory for them.
HttpResponse response_to(const std::exception_ptr& fault) noexcept;

}  // namespace candor::http
