#pragma once
// --adapter NAME=PATH[:SCALE], of commands that open an engine.

#include <string>
#include <vector>

#include "base/error.h"
#include "candor/adapters.h"

namespace CLI {
class App;
}

namespace candor::apps {

// Refused while the command line is read: what is no such text. help: what becomes of them.
void add_adapters(CLI::App& command, std::vector<std::string>& adapters, const std::string& help);
// PATH alone has the name of its folder, or of its file without the ending.
Result<AdapterSource> read_adapter(const std::string& text);
// REQUIRES: add_adapters() took them.
std::vector<AdapterSource> read_adapters(const std::vector<std::string>& adapters);
// All of them, each as it is.
std::vector<RequestAdapter> all_adapters(const std::vector<std::string>& adapters);

}  // namespace candor::apps
