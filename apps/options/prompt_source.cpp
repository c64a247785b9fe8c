#include "apps/options/prompt_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "apps/options/model_choice.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

Result<std::string> read_all(int fd, const std::string& name) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR && !interrupted()) continue;
    if (n < 0) return fail(ErrorKind::kIo, fmt::format("{} cannot be read: {}", name, std::strerror(errno)));
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxPromptBytes)
      return fail(ErrorKind::kInvalidInput, fmt::format("{} is longer than {}, which is the most that is read", name,
                                                        format_bytes(kMaxPromptBytes)));
  }
}

Result<std::string> check_text(std::string text, const std::string& name) {
  if (const size_t at = text.find('\0'); at != std::string::npos)
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} is binary: a zero byte at offset {}; give text in UTF-8", name, at));
  if (const size_t at = first_invalid_utf8(text); at != text.size())
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} is not valid UTF-8: byte 0x{:02X} at offset {}; convert it first (iconv)", name,
                            static_cast<uint8_t>(text[at]), at));
  return text;
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, const std::string& name) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return fail(ErrorKind::kNotFound, fmt::format("{}: {}", name, std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) return fail(ErrorKind::kInvalidInput, name + " is a folder; give a text file");
  if (S_ISREG(status.st_mode) && static_cast<size_t>(status.st_size) > kMaxPromptBytes)
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} has {}: at most {} can be read", name,
                            format_bytes(static_cast<uint64_t>(status.st_size)), format_bytes(kMaxPromptBytes)));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(ErrorKind::kIo, fmt::format("{}: {}", name, std::strerror(errno)));
  auto text = read_all(fd, name);
  ::close(fd);
  if (!text) return text;
  return check_text(std::move(*text), name);
}

Result<std::string> read_stdin(bool allow_any_bytes) {
  auto text = read_all(STDIN_FILENO, "standard input");
  if (!text || allow_any_bytes) return text;
  return check_text(std::move(*text), "standard input");
}

Result<std::string> read_prompt(const PromptSource& source) {
  if (source.positionals.size() > 1) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{} prompts given (\"{}\", \"{}\"...): put the prompt in quotes", source.positionals.size(),
                            source.positionals[0], source.positionals[1]));
  }
  const int n_given = int(source.option.has_value()) + int(source.file.has_value()) + int(!source.positionals.empty());
  if (n_given > 1) return fail(ErrorKind::kInvalidInput, "several prompts given (-p, -f, an argument): give one");
  if (source.option) return check_text(*source.option, "the prompt of -p");
  if (!source.positionals.empty()) return check_text(source.positionals[0], "the prompt");
  if (source.file && *source.file != "-") return read_text_file(*source.file, "the prompt file " + *source.file);
  if (!source.file && is_terminal(STDIN_FILENO))
    return fail(ErrorKind::kInvalidInput,
                "no prompt given: candor run \"Once upon a time\", or -f FILE, or text on standard input");
  return read_stdin(false);
}

void add_prompt_options(CLI::App& command, PromptSource& source, const std::string& help) {
  command.add_option("text", source.positionals, "[MODEL] PROMPT");
  command.add_option("-p,--prompt", source.option, help)->type_name("TEXT");
  command.add_option("-f,--file", source.file, "read the prompt from a file (- = standard input)")->type_name("FILE");
}

Result<ModelAndPrompt> read_model_and_prompt(const std::optional<std::string>& option, PromptSource source) {
  CANDOR_ASSIGN(ModelAndTexts choice, choose_model(option, std::move(source.positionals)));
  source.positionals = std::move(choice.texts);
  CANDOR_ASSIGN(std::string text, read_prompt(source));
  return ModelAndPrompt{std::move(choice.model), std::move(text)};
}

}  // namespace candor::apps
