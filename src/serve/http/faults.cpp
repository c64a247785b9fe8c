#include "serve/http/faults.h"

#include <fmt/format.h>

#include <new>
#include <string>

namespace candor::http {
namespace {

bool is_out_of_memory(const std::exception_ptr& fault) noexcept {
  try {
    std::rethrow_exception(fault);
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string words_of(const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const std::bad_alloc&) {
    return "memory ran out";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception without words";
  }
}

}  // namespace

std::string_view place_name(FaultPlace place) {
  static constexpr std::array<std::string_view, kFaultPlaces> kNames = {"network", "accept", "connection", "websocket",
                                                                        "handler", "worker", "reply"};
  return kNames[static_cast<size_t>(place)];
}

void Faults::note(FaultPlace place, const std::exception_ptr& fault) noexcept {
  ++counts_[static_cast<size_t>(place)];
  try {
    log_.error(fmt::format("fault ({}): {}; what it belonged to has ended, the server goes on", place_name(place),
                           words_of(fault)));
  } catch (...) {
    log_.error("fault: memory ran out");
  }
}

Error error_of(const std::exception_ptr& fault) {
  const bool is_memory = is_out_of_memory(fault);
  return is_memory ? fail(ErrorKind::kOutOfMemory, "memory ran out")
                   : fail(ErrorKind::kInternal, "a fault of the server");
}

HttpResponse response_to(const std::exception_ptr& fault) noexcept {
  try {
    return error_response(error_of(fault));
  } catch (...) {
    return {.status = 503, .content_type = {}, .must_close = true};
  }
}

}  // namespace candor::http
