// What AddressSanitizer does at a load or a store of a whole vector (32 or 64 bytes), quicker: gcc calls a function for
// accesses of any length there, which takes most of the time of a sanitized kernel. Memory whose shadow is all zero may
// be accessed; whatever is not that simple goes to the sanitizer's own function, so nothing is seen less.
//
// Source: AddressSanitizer's algorithm (eight bytes of memory have one of shadow; the shadow of x86-64 Linux is a part
// of the ABI) and its interface, sanitizer/asan_interface.h. Linked in front of the sanitizer's library.

#include <stddef.h>
#include <stdint.h>
#include <string.h>

void* __asan_region_is_poisoned(void* begin, size_t size);
void __asan_report_load_n(void* begin, size_t size);
void __asan_report_store_n(void* begin, size_t size);

static inline const uint8_t* shadow_of(uintptr_t address) {
  return (const uint8_t*)((address >> 3) + 0x7fff8000);
}

// Vectors need not be aligned: the byte of shadow behind the whole ones counts.
static inline int is_clean(const void* begin, size_t size) {
  const uintptr_t first = (uintptr_t)begin;
  const uint8_t last = *shadow_of(first + size - 1);
  uint64_t whole = 0;
  if (size == 32) memcpy(&whole, shadow_of(first), 4);
  else if (size == 64) memcpy(&whole, shadow_of(first), 8);
  else return 0;
  return (whole | last) == 0;
}

void __asan_loadN(void* begin, size_t size) {
  if (!is_clean(begin, size) && __asan_region_is_poisoned(begin, size)) __asan_report_load_n(begin, size);
}

void __asan_storeN(void* begin, size_t size) {
  if (!is_clean(begin, size) && __asan_region_is_poisoned(begin, size)) __asan_report_store_n(begin, size);
}
