#include "apps/commands/page_opener.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

bool has_desktop() {
  return std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
}

// Through a shell that ends at once, so that the opener is nobody's to wait for: the server lives on.
bool open_in_browser(const std::string& address) {
  std::string program = "/bin/sh", option = "-c",
              script = "command -v xdg-open >/dev/null && (xdg-open \"$0\" >/dev/null 2>&1 &)";
  std::string target = address;
  char* const arguments[] = {program.data(), option.data(), script.data(), target.data(), nullptr};
  pid_t process = 0;
  if (::posix_spawn(&process, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  return ::waitpid(process, &status, 0) == process && status == 0;
}

}  // namespace

void show_page(const std::string& address, bool opens) {
  const bool is_open = opens && has_desktop() && open_in_browser(address);
  if (is_open) return write_err(fmt::format("its page is open in your browser: {}\n", address));
  write_err(fmt::format("its page: {}{}\n", address, opens ? " (there is no browser here to open it in)" : ""));
}

}  // namespace candor::apps
