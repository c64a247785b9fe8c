#pragma once
// Bytes between the members of a struct, which no member has.

namespace candor::platform {

// Sets them to 0, so that equal members are equal bytes; where the compiler can't, they stay as they are.
template <class Plain>
void clear_padding(Plain& value) {
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&value);
#else
  static_cast<void>(value);
#endif
}

}  // namespace candor::platform
