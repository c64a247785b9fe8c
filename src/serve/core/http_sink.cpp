#include "serve/core/http_sink.h"

#include <nlohmann/json.hpp>

namespace candor::serve {

void HttpSink::open_stream() {
  is_open_ = true;
  const bool is_lines = format_ == StreamFormat::kLines;
  http::HttpResponse head{.content_type = is_lines ? "application/x-ndjson" : "text/event-stream",
                          .headers = headers_};
  head.headers.emplace_back("cache-control", "no-cache");
  head.headers.emplace_back("x-accel-buffering", "no");
  exchange_->open_stream(std::move(head));
}

void HttpSink::write(const std::string& name, const std::string& json) {
  switch (format_) {
    case StreamFormat::kData:
    case StreamFormat::kBareData:
      exchange_->write("data: " + json + "\n\n");
      break;
    case StreamFormat::kEvents:
      exchange_->write("event: " + name + "\ndata: " + json + "\n\n");
      break;
    case StreamFormat::kLines:
      exchange_->write(json + "\n");
      break;
  }
}

void HttpSink::chunk(const Json& json) {
  write(format_ == StreamFormat::kEvents ? json.value("type", "") : std::string(), to_text(json));
}

void HttpSink::end_stream() {
  if (format_ == StreamFormat::kData) exchange_->write("data: [DONE]\n\n");
  exchange_->finish();
}

void HttpSink::fail(const Error& error) {
  http::HttpResponse response = http::error_response(error);
  response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
  if (!is_open_) return exchange_->respond(std::move(response));
  write("error", http::in_form_of(exchange_->request(), std::move(response)).body);
  exchange_->finish();
}

}  // namespace candor::serve
