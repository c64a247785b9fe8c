#include "serve/core/http_sink.h"

#include <nlohmann/json.hpp>

namespace candor::serve {

namespace {

http::HttpResponse stream_head(const http::Headers& headers, StreamFormat format) {
  const bool is_lines = format == StreamFormat::kLines;
  http::HttpResponse head{.content_type = is_lines ? "application/x-ndjson" : "text/event-stream", .headers = headers};
  head.headers.emplace_back("cache-control", "no-cache");
  head.headers.emplace_back("x-accel-buffering", "no");
  return head;
}

// name: of the event, where events have names.
std::string framed(StreamFormat format, const std::string& name, const std::string& json) {
  switch (format) {
    case StreamFormat::kData:
    case StreamFormat::kBareData:
      break;
    case StreamFormat::kEvents:
      return "event: " + name + "\ndata: " + json + "\n\n";
    case StreamFormat::kLines:
      return json + "\n";
  }
  return "data: " + json + "\n\n";
}

}  // namespace

void open_before_reply(http::Exchange& exchange, const http::Headers& headers, const LoadingForm& form,
                       const std::shared_ptr<const EarlyStream>& early) {
  exchange.open_before_reply(stream_head(headers, form.format), [form, early](const http::HttpResponse& response) {
    if (form.last_words != nullptr && response.failure) return form.last_words(*early, response);
    return framed(form.format, response.failure ? "error" : "message", response.body);
  });
}

void HttpSink::open_stream() {
  is_open_ = true;
  exchange_->open_stream(stream_head(headers_, format_));
}

void HttpSink::write(const std::string& name, const std::string& json) {
  exchange_->write(framed(format_, name, json));
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
