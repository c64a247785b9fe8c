#pragma once
// Result and Error (candor/result.h), and the macros that return an Error to the caller. Bugs are caught by
// CANDOR_CHECK (always) and CANDOR_DCHECK (debug builds); no input may ever trigger either.

#include <utility>

#include "candor/result.h"  // IWYU pragma: export

namespace candor {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace candor

#define CANDOR_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::candor::check_failed(#condition, __FILE__, __LINE__))
#ifdef NDEBUG
#define CANDOR_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#else
#define CANDOR_DCHECK(condition) CANDOR_CHECK(condition)
#endif

// Returns the error of a Result<...> expression from the enclosing function; the value is dropped.
#define CANDOR_TRY(expression)                                                                      \
  do {                                                                                              \
    if (auto candor_result = (expression); !candor_result) return std::move(candor_result).error(); \
  } while (false)
// CANDOR_ASSIGN(auto file, open(path)): declares or assigns the value, or returns the error.
#define CANDOR_ASSIGN_CAT2(a, b) a##b
#define CANDOR_ASSIGN_CAT(a, b) CANDOR_ASSIGN_CAT2(a, b)
#define CANDOR_ASSIGN(lhs, expression) CANDOR_ASSIGN_IMPL(CANDOR_ASSIGN_CAT(candor_result_, __LINE__), lhs, expression)
#define CANDOR_ASSIGN_IMPL(result, lhs, expression) \
  auto result = (expression);                       \
  if (!result) return std::move(result).error();    \
  lhs = std::move(*result)
