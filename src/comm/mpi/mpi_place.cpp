#include "comm/mpi/mpi_place.h"

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace candor::comm {
namespace {

struct Names {
  const char* rank;
  const char* size;
  const char* rank_here;
};
constexpr Names kNames[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                            {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}};

std::optional<int32_t> number_in(const char* name) {
  const char* text = std::getenv(name);
  int32_t number = 0;
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (code != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<MpiPlace> mpi_place() {
  for (const Names& names : kNames) {
    const auto rank = number_in(names.rank);
    const auto size = number_in(names.size);
    if (rank && size && *size > 1 && *rank >= 0 && *rank < *size) {
      return MpiPlace{*rank, *size, number_in(names.rank_here).value_or(0) == 0};
    }
  }
  return std::nullopt;
}

}  // namespace candor::comm
