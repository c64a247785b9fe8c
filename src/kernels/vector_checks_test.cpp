// What the sanitized build checks of a whole vector (cmake/vector_checks.c): no byte beyond a block may be touched.

#ifdef __SANITIZE_ADDRESS__

#include <gtest/gtest.h>
#include <sanitizer/asan_interface.h>

#include <cstddef>
#include <vector>

extern "C" {
void __asan_loadN(void* begin, size_t size);
void __asan_storeN(void* begin, size_t size);
}

namespace candor::kernels {
namespace {

constexpr size_t kBytes = 100;

TEST(vector_checks, let_pass_what_lies_within) {
  std::vector<char> block(kBytes);
  for (const size_t size : {32, 64}) {
    for (size_t begin = 0; begin + size <= kBytes; ++begin) {
      __asan_loadN(block.data() + begin, size);
      __asan_storeN(block.data() + begin, size);
    }
  }
}

TEST(vector_checks, end_the_program_at_the_first_byte_outside) {
  std::vector<char> block(kBytes);
  for (const size_t size : {32, 64}) {
    for (const size_t beyond : {size_t{1}, size_t{4}, size_t{12}, size - 1}) {
      char* begin = block.data() + kBytes - size + beyond;
      EXPECT_DEATH(__asan_loadN(begin, size), "AddressSanitizer") << size << " " << beyond;
      EXPECT_DEATH(__asan_storeN(begin, size), "AddressSanitizer") << size << " " << beyond;
    }
    EXPECT_DEATH(__asan_loadN(block.data() - 1, size), "AddressSanitizer") << size;
  }
}

TEST(vector_checks, see_a_hole_in_the_middle) {
  std::vector<char> block(kBytes);
  ASAN_POISON_MEMORY_REGION(block.data() + 40, 8);
  __asan_loadN(block.data() + 8, 32);
  __asan_loadN(block.data() + 48, 32);
  EXPECT_DEATH(__asan_loadN(block.data() + 9, 32), "AddressSanitizer");
  EXPECT_DEATH(__asan_loadN(block.data() + 16, 64), "AddressSanitizer");
  ASAN_UNPOISON_MEMORY_REGION(block.data() + 40, 8);
}

}  // namespace
}  // namespace candor::kernels

#endif
