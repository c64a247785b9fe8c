#pragma once
// Sends a reply over HTTP: as one JSON body, or as a stream.

#include <memory>
#include <string>
#include <utility>

#include "serve/core/early_stream.h"
#include "serve/core/job.h"
#include "serve/core/json_body.h"
#include "serve/core/stream_format.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"

namespace candor::serve {

class HttpSink final : public Sink {
 public:
  HttpSink(std::shared_ptr<http::Exchange> exchange, http::Headers headers, StreamFormat format)
      : exchange_(std::move(exchange)), headers_(std::move(headers)), format_(format) {}

  void open_stream() override;
  void chunk(const Json& json) override;
  void end_stream() override;
  void whole(const std::string& json) override { exchange_->respond({.body = json, .headers = headers_}); }
  void add_headers(const http::Headers& more) override { headers_.insert(headers_.end(), more.begin(), more.end()); }
  void fail(const Error& error) override;
  void cut() noexcept override { exchange_->cut(); }

 private:
  // name: of the event, where events have names.
  void write(const std::string& name, const std::string& json);

  std::shared_ptr<http::Exchange> exchange_;
  http::Headers headers_;
  const StreamFormat format_;
  bool is_open_ = false;
};

// The stream of a reply that is not yet known. It is opened once: the reply then goes into it, an error as well.
void open_before_reply(http::Exchange& exchange, const http::Headers& headers, const LoadingForm& form,
                       const std::shared_ptr<const EarlyStream>& early);

inline Error too_many_waiting() {
  return {ErrorKind::kBusy, "too many requests wait to be read; try again"};
}

}  // namespace candor::serve
