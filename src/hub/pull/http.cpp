#include "hub/pull/http.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace candor::hub {
namespace {

constexpr size_t kMaxTextBytes = size_t{16} << 20;

std::string explain(int status) {
  if (status == 401 || status == 403) return "access is refused: the model may be gated, or the token wrong";
  if (status == 404) return "it does not exist there";
  return fmt::format("the server answered {}", status);
}

// Errors of the file or of the limit keep their kind; what failed on the way can be tried again.
Error of_transfer(const std::string& url, const Error& error) {
  const char* remedy = error.kind == ErrorKind::kIo ? "; try again, what has arrived is kept" : "";
  return fail(error.kind, fmt::format("{}: {}{}", url, error.message, remedy));
}

}  // namespace

Result<std::string> HttpClient::get(const std::string& url) {
  std::string text;
  const auto take = [&text](int, std::string_view bytes) -> Result<void> {
    if (text.size() + bytes.size() > kMaxTextBytes) {
      return fail(ErrorKind::kInvalidInput, fmt::format("the answer has more than {} bytes", kMaxTextBytes));
    }
    text += bytes;
    return {};
  };
  const auto status = client_.fetch({.url = url, .token = token_}, take);
  if (!status) return of_transfer(url, status.error());
  if (*status == 200) return text;
  return fail(ErrorKind::kNotFound, fmt::format("{}: {}", url, explain(*status)));
}

Result<void> HttpClient::download(const std::string& url, PartialFile& file, uint64_t max_bytes,
                                  const TransferProgress& progress) {
  if (file.size() > max_bytes) CANDOR_TRY(file.clear());
  const uint64_t begin = file.size();
  bool has_begun = false;
  const auto take = [&](int status, std::string_view bytes) -> Result<void> {
    if (status != 200 && status != 206) return {};  // an error's page
    if (!has_begun && status == 200) CANDOR_TRY(file.clear());
    has_begun = true;
    if (bytes.size() <= max_bytes - file.size()) return file.append(std::as_bytes(std::span(bytes)));
    return fail(ErrorKind::kInvalidInput,
                fmt::format("the server sends more than the {} bytes that the hub states", max_bytes));
  };
  const auto keep_going = [&] { return !progress || !has_begun || progress(file.size(), max_bytes); };
  client::HttpRequest request{.url = url, .token = token_};
  if (begin > 0) request.headers.emplace_back("Range", fmt::format("bytes={}-", begin));
  const auto status = client_.fetch(std::move(request), take, keep_going);
  if (!status && status.error().kind == ErrorKind::kCancelled)
    return fail(ErrorKind::kCancelled, "stopped; what has arrived is kept, and pull goes on from there");
  if (!status) return of_transfer(url, status.error());
  const bool was_complete = *status == 416 && begin > 0;  // nothing lies behind the last byte
  if (*status == 200 || *status == 206 || was_complete) return {};
  return fail(ErrorKind::kNotFound, fmt::format("{}: {}", url, explain(*status)));
}

}  // namespace candor::hub
