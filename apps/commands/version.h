#pragma once
// What `candor --version` says. Any thread.

#include <string>

namespace candor::apps {

std::string version_text();  // "candor 0.1.0"
// One line: version, commit (null where the build was not told), numerics, and the kernels that can run here.
std::string version_json();

}  // namespace candor::apps
