#pragma once
// The first message between ranks that mpirun started: each says what it is, and check_hellos() tells whether they can
// work together. Its first fields never change, so that ranks of different versions can tell each other so.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::comm {

struct Hello {
  uint64_t magic = 0;
  std::array<char, 64> version{};
  std::array<char, 64> host{};
  std::array<char, 96> machine{};
  uint64_t shares_memory = 0;  // with ranks of the same machine that share it too
  int32_t pid = 0;
  int32_t descriptor = -1;          // of the memory that it offers to ranks of its machine
  uint64_t command_hash = 0;        // of the whole command line
  std::array<char, 512> command{};  // its beginning
};

Hello make_hello(std::string_view command, std::string_view machine, bool shares_memory);
// Names a machine and what sees its processes.
std::string this_machine();

// Whether all are ranks of one command of one version; the first that is not, by name.
Result<void> check_hellos(std::span<const Hello> hellos);

// "rank 2 (host b)".
std::string name_of_rank(std::span<const Hello> hellos, int32_t rank);
// Ranks that share memory with `rank`, itself included, ascending.
std::vector<int32_t> ranks_near(std::span<const Hello> hellos, int32_t rank);
// How many ranks run on that rank's machine.
int32_t count_beside(std::span<const Hello> hellos, int32_t rank);
// How many of them have a lower number.
int32_t count_before(std::span<const Hello> hellos, int32_t rank);

}  // namespace candor::comm
