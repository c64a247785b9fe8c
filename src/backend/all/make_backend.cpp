#include "backend/all/make_backend.h"

#include <string>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"

namespace candor::backend {

Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") return make_cpu_backend({.n_threads = options.n_threads});
  if (name == "reference") return make_reference_backend();
  return fail(ErrorKind::kInvalidInput,
              "backend \"" + std::string(name) + "\" is unknown, expected one of: cpu, reference");
}

}  // namespace candor::backend
