#include "net/public_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "net/http_client.h"
#include "net/url.h"

namespace candor::client {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kOk = 200;

char small_letter(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool begins_with(std::string_view text, std::string_view beginning) {
  if (text.size() < beginning.size()) return false;
  for (size_t i = 0; i < beginning.size(); ++i) {
    if (small_letter(text[i]) != beginning[i]) return false;
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string shown;
  for (const char c : text.substr(0, kMost)) shown += c >= ' ' && c < '\x7f' ? c : '?';
  return shown;
}

Error refused(std::string words) {
  return fail(ErrorKind::kInvalidInput, std::move(words));
}

}  // namespace

PublicFiles::PublicFiles(std::shared_ptr<PublicFileDoor> door)
    : door_(std::move(door)), bytes_left_(door_->rules_.most_bytes), time_left_(door_->rules_.at_most) {}

Result<std::string> PublicFiles::fetch(const std::string& url) {
  if (door_->n_open_.fetch_add(1) >= door_->rules_.n_at_once) {
    door_->n_open_.fetch_sub(1);
    return fail(ErrorKind::kBusy, "others' files are being fetched; try again");
  }
  const auto began = Clock::now();
  auto file = fetch_now(url);
  time_left_ -= std::min(time_left_, Clock::now() - began);
  door_->n_open_.fetch_sub(1);
  if (file) bytes_left_ -= file->size();
  return file;
}

Result<std::string> PublicFiles::fetch_now(const std::string& url) {
  const PublicFileRules& rules = door_->rules_;
  CANDOR_ASSIGN(const Url parsed, parse_url(url));
  const std::string host = parsed.authority(true);
  HttpRequest request{.url = url, .max_redirects = rules.max_redirects, .may_reach = rules.may_reach};
  request.headers.emplace_back("Accept", rules.type + "*");
  request.on_head = [&](int status, std::string_view type) -> Result<void> {
    if (status != kOk) return refused(fmt::format("{}: the answer has status {}", host, status));
    if (begins_with(type, rules.type)) return {};
    return refused(fmt::format("{}: the answer is of type \"{}\", expected {}...", host, printable(type), rules.type));
  };
  std::string file;
  const auto take = [&](int, std::string_view bytes) -> Result<void> {
    if (bytes.size() > bytes_left_ - file.size()) {
      return refused(fmt::format("{}: more than {} bytes, expected at most so many for all files of a request", host,
                                 rules.most_bytes));
    }
    file += bytes;
    return {};
  };
  const auto end = Clock::now() + time_left_;
  bool is_late = false;
  HttpClient client;
  const auto status = client.fetch(std::move(request), take, [&] {
    is_late = Clock::now() >= end;
    return !is_late;
  });
  if (is_late) {
    return refused(fmt::format("{}: not there within {} s, which all files of a request have together", host,
                               std::chrono::duration<double>(rules.at_most).count()));
  }
  if (!status) return refused(status.error().message);
  return file;
}

}  // namespace candor::client
