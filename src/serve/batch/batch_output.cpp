#include "serve/batch/batch_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "formats/new_file.h"
#include "serve/batch/line_reader.h"
#include "serve/core/json_body.h"

namespace candor::serve {
namespace {

constexpr size_t kMaxAnswerBytes = size_t{256} << 20;
constexpr std::string_view kOpening = R"({"id":"batch_req_)";
constexpr size_t kDigits = 16;

struct Answered {
  std::string custom_id;
  uint64_t digest = 0;
  bool is_error = false;
};

std::optional<Answered> read_answer(std::string_view line) {
  if (!line.starts_with(kOpening) || line.size() < kOpening.size() + kDigits) return std::nullopt;
  Answered answered;
  const char* digits = line.data() + kOpening.size();
  const auto [end, error] = std::from_chars(digits, digits + kDigits, answered.digest, 16);
  if (error != std::errc() || end != digits + kDigits) return std::nullopt;
  const auto json = read_written(line);
  if (!json || !json->is_object() || !json->contains("custom_id") || !(*json)["custom_id"].is_string())
    return std::nullopt;
  answered.custom_id = (*json)["custom_id"].get<std::string>();
  const auto response = json->find("response");
  answered.is_error = response == json->end() || !response->is_object() || response->value("status_code", 0) != 200;
  return answered;
}

// Of what was to become a line.
bool is_torn(std::string_view text) {
  const size_t n = std::min(text.size(), kOpening.size());
  return text.substr(0, n) == kOpening.substr(0, n);
}

}  // namespace

Result<BatchOutput> BatchOutput::open(const std::filesystem::path& path, bool drops_errors) {
  CANDOR_ASSIGN(BatchOutput output, open_once(path));
  if (!drops_errors || output.n_errors_ == 0) return output;
  CANDOR_TRY(output.write_without_errors());
  return open_once(path);  // the file of that name is another one now, with a lock of its own
}

Result<BatchOutput> BatchOutput::open_once(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  BatchOutput output(file, path);
  if (file < 0) return output.cannot(errno);
  if (flock(file, LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::kBusy, fmt::format("{}: another batch writes it", path.string()));
  CANDOR_TRY(output.read_answered());
  if (ftruncate(file, static_cast<off_t>(output.size_)) != 0 || lseek(file, 0, SEEK_END) < 0)
    return output.cannot(errno);
  return output;
}

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      size_(other.size_),
      answered_(std::move(other.answered_)),
      n_errors_(other.n_errors_) {}

BatchOutput::~BatchOutput() {
  if (file_ >= 0) close(file_);
}

Error BatchOutput::cannot(int error) const {
  return fail(ErrorKind::kIo, fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(error)));
}

Result<void> BatchOutput::read_answered() {
  CANDOR_ASSIGN(LineReader lines, LineReader::open(path_, kMaxAnswerBytes));
  while (true) {
    CANDOR_ASSIGN(const std::optional<FileLine> line, lines.next());
    if (!line) return {};
    if (!line->is_whole && is_torn(line->text)) return {};
    const auto answered = line->is_whole ? read_answer(line->text) : std::nullopt;
    if (!answered)
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}: line {} is no answer of a batch: name another file", path_.string(), line->number));
    answered_[answered->custom_id] = answered->digest;
    n_errors_ += answered->is_error;
    size_ = line->end;
  }
}

Result<void> BatchOutput::write_without_errors() const {
  CANDOR_ASSIGN(LineReader lines, LineReader::open(path_, kMaxAnswerBytes));
  CANDOR_ASSIGN(formats::NewFile file, formats::NewFile::create(path_));
  while (true) {
    CANDOR_ASSIGN(const std::optional<FileLine> line, lines.next());
    if (!line || !line->is_whole) return file.finish();
    const auto answered = read_answer(line->text);
    if (!answered || answered->is_error) continue;
    const std::string text = line->text + "\n";
    CANDOR_TRY(file.put(std::as_bytes(std::span(text))));
  }
}

Result<void> BatchOutput::append(const BatchAnswer& answer) {
  const std::string id = fmt::format("batch_req_{:016x}", answer.digest);
  const std::string warnings = answer.warnings.empty() ? "" : fmt::format(R"(,"warnings":{})", answer.warnings);
  const std::string line =
      fmt::format(R"({{"id":"{0}","custom_id":{1},"response":{{"status_code":{2},"request_id":"{0}","body":{3}{4}}},)"
                  R"("error":null}})"
                  "\n",
                  id, to_text(Json(answer.custom_id)), answer.status, answer.body, warnings);
  for (size_t at = 0; at < line.size();) {
    const ssize_t n = write(file_, line.data() + at, line.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      if (ftruncate(file_, static_cast<off_t>(size_)) == 0) lseek(file_, 0, SEEK_END);
      Error reported = cannot(error);
      reported.message += "; the answers before stay, and the same batch goes on";
      return reported;
    }
    at += static_cast<size_t>(n);
  }
  size_ += line.size();
  return {};
}

Result<void> BatchOutput::flush() {
  if (fdatasync(file_) != 0 && errno != EINVAL) return cannot(errno);
  return {};
}

}  // namespace candor::serve
