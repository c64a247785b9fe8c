#include "hub/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace candor::hub {
namespace {

constexpr size_t kMaxTextBytes = size_t{16} << 20;
constexpr long kConnectSeconds = 20;
constexpr long kSlowestBytesPerSecond = 100;  // below it for kSlowSeconds a transfer counts as dead
constexpr long kSlowSeconds = 60;

struct CloseEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct TextSink {
  std::string text;
  bool is_too_long = false;
};

// libcurl's callbacks are C: nothing may be thrown through them.
size_t append_text(char* data, size_t size, size_t count, void* target) noexcept {
  auto& sink = *static_cast<TextSink*>(target);
  sink.is_too_long = sink.text.size() + size * count > kMaxTextBytes;
  if (sink.is_too_long) return 0;
  sink.text.append(data, size * count);
  return size * count;
}

// Where a body goes; the first bytes of a fresh 200 replace what a file had.
struct FileSink {
  CURL* easy;
  PartialFile& file;
  uint64_t max_bytes;
  const TransferProgress& progress;
  bool has_begun = false;
  bool stopped = false;
  std::optional<Error> error = {};
};

Result<void> take(FileSink& sink, std::span<const std::byte> bytes) {
  if (!sink.has_begun) {
    long status = 0;
    curl_easy_getinfo(sink.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 206) return {};  // an error's page
    if (status == 200) CANDOR_TRY(sink.file.clear());
    sink.has_begun = true;
  }
  if (bytes.size() <= sink.max_bytes - sink.file.size()) return sink.file.append(bytes);
  return fail(ErrorKind::kInvalidInput,
              fmt::format("the server sends more than the {} bytes that the hub states", sink.max_bytes));
}

size_t append_file(char* data, size_t size, size_t count, void* target) noexcept {
  auto& sink = *static_cast<FileSink*>(target);
  auto taken = take(sink, std::as_bytes(std::span(data, size * count)));
  if (taken) return size * count;
  sink.error = std::move(taken).error();
  return 0;
}

int report(void* target, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
  auto& sink = *static_cast<FileSink*>(target);
  if (!sink.progress || !sink.has_begun) return 0;
  sink.stopped = !sink.progress(sink.file.size(), sink.max_bytes);
  return sink.stopped ? 1 : 0;
}

std::string explain(long status) {
  if (status == 401 || status == 403) return "access is refused: the model may be gated, or the token wrong";
  if (status == 404) return "it does not exist there";
  return fmt::format("the server answered {}", status);
}

}  // namespace

struct HttpClient::Impl {
  std::unique_ptr<CURL, CloseEasy> easy;
  std::unique_ptr<curl_slist, FreeList> headers;

  // Options of every request.
  void prepare(const std::string& url) {
    CURL* const c = easy.get();
    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, url.c_str());
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 8L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "candor");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, kSlowestBytesPerSecond);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
    if (headers) curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  }

  Result<long> perform(const std::string& url) {
    const CURLcode code = curl_easy_perform(easy.get());
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK) return status;
    return fail(ErrorKind::kIo,
                fmt::format("{}: {}; try again, what has arrived is kept", url, curl_easy_strerror(code)));
  }
};

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::make(const std::string& token) {
  auto impl = std::make_unique<Impl>();
  impl->easy.reset(curl_easy_init());
  if (impl->easy == nullptr) return fail(ErrorKind::kInternal, "libcurl could not be started");
  if (!token.empty()) {
    impl->headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + token).c_str()));
  }
  return HttpClient(std::move(impl));
}

Result<std::string> HttpClient::get(const std::string& url) {
  TextSink sink;
  impl_->prepare(url);
  curl_easy_setopt(impl_->easy.get(), CURLOPT_WRITEFUNCTION, append_text);
  curl_easy_setopt(impl_->easy.get(), CURLOPT_WRITEDATA, &sink);
  const auto answered = impl_->perform(url);
  if (sink.is_too_long) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the answer has more than {} bytes", url, kMaxTextBytes));
  }
  CANDOR_ASSIGN(const long status, answered);
  if (status == 200) return std::move(sink.text);
  return fail(ErrorKind::kNotFound, fmt::format("{}: {}", url, explain(status)));
}

Result<void> HttpClient::download(const std::string& url, PartialFile& file, uint64_t max_bytes,
                                  const TransferProgress& progress) {
  if (file.size() > max_bytes) CANDOR_TRY(file.clear());
  const uint64_t begin = file.size();
  FileSink sink{impl_->easy.get(), file, max_bytes, progress};
  impl_->prepare(url);
  curl_easy_setopt(sink.easy, CURLOPT_WRITEFUNCTION, append_file);
  curl_easy_setopt(sink.easy, CURLOPT_WRITEDATA, &sink);
  curl_easy_setopt(sink.easy, CURLOPT_XFERINFOFUNCTION, report);
  curl_easy_setopt(sink.easy, CURLOPT_XFERINFODATA, &sink);
  curl_easy_setopt(sink.easy, CURLOPT_NOPROGRESS, 0L);
  const std::string range = fmt::format("{}-", begin);
  if (begin > 0) curl_easy_setopt(sink.easy, CURLOPT_RANGE, range.c_str());
  const auto status = impl_->perform(url);
  if (sink.error) return fail(sink.error->kind, fmt::format("{}: {}", url, sink.error->message));
  if (sink.stopped)
    return fail(ErrorKind::kCancelled, "stopped; what has arrived is kept, and pull goes on from there");
  if (!status) return status.error();
  const bool was_complete = *status == 416 && begin > 0;  // nothing lies behind the last byte
  if (*status == 200 || *status == 206 || was_complete) return {};
  return fail(ErrorKind::kNotFound, fmt::format("{}: {}", url, explain(*status)));
}

}  // namespace candor::hub
