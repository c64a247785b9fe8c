#pragma once
// A reply over HTTP: one JSON body, or server-sent events that end with [DONE].

#include <memory>
#include <string>
#include <utility>

#include "serve/http/exchange.h"
#include "serve/openai/job.h"

namespace candor::openai {

class HttpSink final : public Sink {
 public:
  HttpSink(std::shared_ptr<http::Exchange> exchange, http::Headers headers)
      : exchange_(std::move(exchange)), headers_(std::move(headers)) {}

  void open_stream() override {
    is_open_ = true;
    http::HttpResponse head{.content_type = "text/event-stream", .headers = headers_};
    head.headers.emplace_back("cache-control", "no-cache");
    head.headers.emplace_back("x-accel-buffering", "no");
    exchange_->open_stream(std::move(head));
  }
  void chunk(const std::string& json) override { exchange_->write("data: " + json + "\n\n"); }
  void end_stream() override {
    exchange_->write("data: [DONE]\n\n");
    exchange_->finish();
  }
  void whole(const std::string& json) override { exchange_->respond({.body = json, .headers = headers_}); }
  void fail(const Error& error) override {
    http::HttpResponse response = http::error_response(error);
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    if (!is_open_) return exchange_->respond(std::move(response));
    chunk(response.body);
    exchange_->finish();
  }
  void cut() noexcept override { exchange_->cut(); }

 private:
  std::shared_ptr<http::Exchange> exchange_;
  http::Headers headers_;
  bool is_open_ = false;
};

inline Error too_many_waiting() {
  return {ErrorKind::kBusy, "too many requests wait to be read; try again"};
}

}  // namespace candor::openai
