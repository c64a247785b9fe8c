#include "base/fault.h"

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace candor {
namespace {

// Texts of up to 15 bytes stand in the string itself.
Error out_of_memory() {
  return {ErrorKind::kOutOfMemory, "memory ran out"};
}

Error unexpected(const char* what) noexcept {
  try {
    return {ErrorKind::kInternal, std::string("unexpected: ") + what};
  } catch (...) {
    return out_of_memory();
  }
}

Error refused_thread(const std::system_error& error) noexcept {
  try {
    return {ErrorKind::kOutOfMemory, "the system refuses a thread: " + error.code().message() +
                                         "; end other programs, or raise the limit on processes"};
  } catch (...) {
    return out_of_memory();
  }
}

Error copy_of(const Error& error) noexcept {
  try {
    return error;
  } catch (...) {
    return out_of_memory();
  }
}

}  // namespace

Error error_of_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::system_error& error) {
    return refused_thread(error);
  } catch (const ErrorException& exception) {
    return copy_of(exception.error());
  } catch (const std::exception& exception) {
    return unexpected(exception.what());
  } catch (...) {
    return unexpected("an exception of no known kind");
  }
}

}  // namespace candor
