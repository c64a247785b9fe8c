#include "comm/mpi/mpi_library.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "comm/communicator.h"

namespace candor::comm {
namespace {

constexpr const char* kRemedy = "on Debian: apt install openmpi-bin libopenmpi-dev";

Error cannot_open(const std::string& why) {
  return fail(ErrorKind::kInvalidInput, "mpirun started this process, and MPI cannot be used: " + why, "ranks");
}

bool write_all(int file, const unsigned char* bytes, size_t n_bytes) {
  while (n_bytes > 0) {
    const ssize_t n = ::write(file, bytes, n_bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    n_bytes -= static_cast<size_t>(n);
  }
  return true;
}

// MPI's own libraries look for each other's names: they must be everybody's.
Result<void*> open_image() {
  const auto n_bytes = static_cast<size_t>(candor_mpi_image_end - candor_mpi_image);
  if (n_bytes == 0) {
    return cannot_open(std::string("this candor was built without it; install it and build again (") + kRemedy + ")");
  }
  const int file = ::memfd_create("candor-mpi", MFD_CLOEXEC);
  if (file < 0 || !write_all(file, candor_mpi_image, n_bytes)) {
    return cannot_open(std::string("no memory for its library: ") + std::strerror(errno));
  }
  void* library = ::dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_GLOBAL);
  const char* why = library == nullptr ? ::dlerror() : nullptr;
  ::close(file);
  if (library != nullptr) return library;
  return cannot_open(std::string(why == nullptr ? "it does not open" : why) +
                     "; install the MPI that candor was built with (" + kRemedy + ")");
}

}  // namespace

Result<const candor_mpi_calls*> open_mpi() {
  CANDOR_ASSIGN(void* const library, open_image());
  const auto entry = reinterpret_cast<candor_mpi_entry>(::dlsym(library, "candor_mpi"));
  const candor_mpi_calls* calls = entry == nullptr ? nullptr : entry();
  if (calls == nullptr || calls->version != CANDOR_MPI_VERSION) return cannot_open("its library is another one's");
  return calls;
}

Error mpi_failure(const candor_mpi_calls& mpi, const std::string& call, int code) {
  std::array<char, 600> words{};
  mpi.describe(code, words.data(), words.size());
  return lost_rank("MPI: " + call + ": " + words.data());
}

}  // namespace candor::comm
