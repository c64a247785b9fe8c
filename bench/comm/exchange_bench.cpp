// What it costs ranks of one host to put a row together: two processes, each with half of its columns. The figure to
// hold: 3 us for 8 KB while both run. Prints the median and the tenth and ninetieth percentile of many.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/shm/segment.h"
#include "comm/shm/shm_communicator.h"

namespace candor::comm {
namespace {

constexpr int32_t kPerRound = 200;  // exchanges whose mean is one sample
constexpr int32_t kRounds = 400;

std::vector<double> time_exchanges(ShmCommunicator& comm, int32_t n_floats, int32_t n_rows) {
  std::vector<float> rows(static_cast<size_t>(n_floats) * static_cast<size_t>(n_rows));
  const std::vector<int32_t> bounds = {0, n_floats / 2, n_floats};
  std::vector<double> times;
  const int32_t per_round = n_rows == 1 ? kPerRound : 4;
  for (int32_t round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int32_t i = 0; i < per_round; ++i) {
      if (!comm.gather({rows.data(), n_rows, bounds}, Receivers::kAll, 1)) return {};
    }
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    times.push_back(spent.count() / per_round);
  }
  std::ranges::sort(times);
  return times;
}

void run_rank(const std::shared_ptr<Segment>& segment, int32_t rank) {
  ShmCommunicator comm(segment, rank, {});
  if (!comm.wait_for_all(std::chrono::seconds(10))) return;
  for (const auto& [n_floats, n_rows] : {std::pair{512, 1}, {2048, 1}, {4096, 1}, {8192, 1}, {8192, 512}}) {
    const auto times = time_exchanges(comm, n_floats, n_rows);
    if (rank != 0 || times.empty()) continue;
    const size_t n = times.size();
    std::printf("%4d rows of %5d bytes: %9.2f us (%.2f to %.2f)\n", n_rows, n_floats * 4, times[n / 2], times[n / 10],
                times[n * 9 / 10]);
  }
  static_cast<void>(comm.barrier());
}

int run() {
  const auto segment = Segment::make(2);
  if (!segment) return std::printf("%s\n", segment.error().message.c_str()), 1;
  const pid_t child = ::fork();
  run_rank(*segment, child == 0 ? 1 : 0);
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace candor::comm

int main() {
  return candor::comm::run();
}
