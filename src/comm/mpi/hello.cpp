#include "comm/mpi/hello.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <utility>

#include "comm/shm/segment.h"

namespace candor::comm {
namespace {

constexpr uint64_t kHelloMagic = 0x6f'6c'6c'65'68'64'6e'63;  // "cndhello"

template <size_t n>
void put_text(std::array<char, n>& to, std::string_view text) {
  to = {};
  text.copy(to.data(), n - 1);
}

Error bad_hello(std::string message) {
  return fail(ErrorKind::kInvalidInput, std::move(message), "ranks");
}

bool is_beside(const Hello& a, const Hello& b) {
  return a.machine[0] != '\0' && std::string_view(a.machine.data()) == b.machine.data();
}

bool is_text(std::span<const char> text) {
  return !text.empty() && text.back() == '\0';
}

}  // namespace

std::string this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat processes {};
  if (!std::getline(file, boot) || ::stat("/proc/self/ns/pid", &processes) != 0) return {};
  return boot + " " + std::to_string(processes.st_ino);
}

Hello make_hello(std::string_view command, std::string_view machine, bool shares_memory) {
  Hello hello{.magic = kHelloMagic,
              .shares_memory = shares_memory ? 1u : 0u,
              .pid = ::getpid(),
              .command_hash = std::hash<std::string_view>{}(command)};
  put_text(hello.version, protocol_version());
  put_text(hello.machine, machine);
  put_text(hello.command, command);
  std::array<char, 64> host{};
  ::gethostname(host.data(), host.size() - 1);
  hello.host = host;
  return hello;
}

std::string name_of_rank(std::span<const Hello> hellos, int32_t rank) {
  const Hello& hello = hellos[static_cast<size_t>(rank)];
  const std::string name = "rank " + std::to_string(rank);
  return hello.magic == kHelloMagic && is_text(hello.host) ? name + " (host " + hello.host.data() + ")" : name;
}

Result<void> check_hellos(std::span<const Hello> hellos) {
  const Hello& first = hellos.front();
  for (int32_t rank = 1; rank < static_cast<int32_t>(hellos.size()); ++rank) {
    const Hello& other = hellos[static_cast<size_t>(rank)];
    const std::string name = name_of_rank(hellos, rank);
    if (other.magic != kHelloMagic || !is_text(other.version)) {
      return bad_hello(name + " is no candor, or one of a very different version: start all ranks from one version");
    }
    if (std::string_view(other.version.data()) != first.version.data()) {
      return bad_hello(name + " is candor " + other.version.data() + ", and rank 0 is " + first.version.data() +
                       ": start all ranks from one version");
    }
    if (other.command_hash != first.command_hash) {
      return bad_hello(name + " was started as '" + other.command.data() + "', and rank 0 as '" + first.command.data() +
                       "': give all ranks the same options");
    }
  }
  return {};
}

std::vector<int32_t> ranks_near(std::span<const Hello> hellos, int32_t rank) {
  const Hello& own = hellos[static_cast<size_t>(rank)];
  std::vector<int32_t> near;
  for (int32_t i = 0; i < static_cast<int32_t>(hellos.size()); ++i) {
    const Hello& other = hellos[static_cast<size_t>(i)];
    const bool shares = own.shares_memory != 0 && other.shares_memory != 0 && is_beside(own, other);
    if (i == rank || shares) near.push_back(i);
  }
  return near;
}

int32_t count_beside(std::span<const Hello> hellos, int32_t rank) {
  const Hello& own = hellos[static_cast<size_t>(rank)];
  const auto n = std::ranges::count_if(hellos, [&own](const Hello& other) { return is_beside(own, other); });
  return std::max(1, static_cast<int32_t>(n));
}

int32_t count_before(std::span<const Hello> hellos, int32_t rank) {
  const Hello& own = hellos[static_cast<size_t>(rank)];
  return static_cast<int32_t>(std::ranges::count_if(hellos.first(static_cast<size_t>(rank)),
                                                    [&own](const Hello& other) { return is_beside(own, other); }));
}

}  // namespace candor::comm
