// candor_replay_test NAME PATH ...: runs a fuzz target over files: every regular file of the folders, and every file,
// named on the command line. Fails when there is none, so that a lost corpus is noticed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/replay.h"

namespace {

std::vector<std::filesystem::path> files_of(int n_arguments, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (int i = 2; i < n_arguments; ++i) {
    if (!std::filesystem::is_directory(arguments[i])) {
      files.emplace_back(arguments[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int n_arguments, char** arguments) {
  const std::string_view name = n_arguments > 1 ? arguments[1] : "";
  const std::vector<candor::testing::Replay>& all = candor::testing::replays();
  const auto replay = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  if (replay == all.end()) {
    std::fprintf(stderr, "there is no fuzz target '%s'\n", name.data());
    return 2;
  }
  const std::vector<std::filesystem::path> files = files_of(n_arguments, arguments);
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    // Named before it runs: should it crash, the last line says on what.
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    replay->run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu files replayed\n", files.size());
  return files.empty() ? 1 : 0;
}
