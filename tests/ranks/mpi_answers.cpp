// candor_mpi_answers MODEL OUT [sum]: a model's answers to the requests of rank tests, as bytes: by the ranks that
// mpirun started, or alone, each request by itself. sum: by a backend that adds parts of products, which must not go
// unnoticed.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "engine/engine_impl.h"
#include "engine/open/mpi_ranks.h"
#include "rank_requests.h"
#include "support/thread_ranks.h"

namespace candor {
namespace {

template <class T>
void write_list(std::ostream& out, const std::vector<T>& values) {
  const uint64_t n = values.size();
  out.write(reinterpret_cast<const char*>(&n), sizeof(n));
  out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(n * sizeof(T)));
}

void write_answers(const std::string& path, const std::vector<Completion>& answers) {
  std::ofstream out(path, std::ios::binary);
  for (const Completion& answer : answers) {
    write_list(out, answer.tokens);
    write_list(out, answer.logprobs);
    for (const auto& top : answer.top_logprobs) {
      for (const auto& one : top) out << one.token << ' ' << std::hexfloat << one.logprob << '\n';
    }
  }
}

int fails(const Error& error) {
  std::fprintf(stderr, "candor_mpi_answers: %s\n", error.message.c_str());
  return 1;
}

int answer(const std::string& model, const std::string& out, bool is_sum) {
  EngineOptions options = testing::rank_test_options(model);
  const auto joined = engine::joined_ranks();
  options.uses_mpi = joined.has_value();
  options.n_ranks = joined ? joined->size : 1;
  const auto summing = [](const EngineOptions&) { return testing::summing_backend(2)(0); };
  auto engine = is_sum ? engine::open_with_backend(options, summing) : Engine::open(options);
  if (!engine) return fails(engine.error());
  const auto requests = testing::rank_test_requests((*engine)->info());
  std::vector<Completion> answers;
  if (joined) {
    answers = testing::Crowd(**engine).run(requests);
  } else {
    for (const Request& request : requests) answers.push_back(testing::complete(**engine, request));
  }
  write_answers(out, answers);
  return 0;
}

int run(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto place = engine::mpirun_ranks();
  if (!place) return answer(argv[1], argv[2], argc > 3);
  if (const auto joined = engine::join_mpi(argv[1], std::getenv("CANDOR_RANKS_LINK") == nullptr); !joined) {
    return fails(joined.error());
  }
  const auto followed = place->rank == 0 ? Result<void>{} : engine::follow_mpi();
  const int code = place->rank == 0 ? answer(argv[1], argv[2], false) : followed ? 0 : fails(followed.error());
  return engine::leave_mpi() ? code : 3;
}

}  // namespace
}  // namespace candor

int main(int argc, char** argv) {
  const int code = candor::run(argc, argv);
  std::fflush(nullptr);
  std::_Exit(code);
}
