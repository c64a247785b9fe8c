#include "serve/page/files.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/hash.h"
#include "candor_page.h"
#include "serve/http/message.h"

namespace candor::serve::page {
namespace {

// Nothing from elsewhere, no script but its own files, and no text that becomes markup but through the sanitizer.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types dompurify";

struct Form {
  std::string_view content_type;
  const unsigned char* begin;
  const unsigned char* end;
};

const Form& form_of(PageFile file) {
  static const std::array<Form, 5> kForms = {{
      {"text/html; charset=utf-8", candor_page_html, candor_page_html_end},
      {"text/javascript; charset=utf-8", candor_page_js, candor_page_js_end},
      {"text/css; charset=utf-8", candor_page_css, candor_page_css_end},
      {"text/javascript; charset=utf-8", candor_page_math, candor_page_math_end},
      {"text/javascript; charset=utf-8", candor_page_pdf, candor_page_pdf_end},
  }};
  return kForms[static_cast<size_t>(file)];
}

std::string tag_of(PageFile file) {
  const std::string_view bytes = bytes_of(file);
  return fmt::format("\"{:016x}\"", hash_bytes(std::as_bytes(std::span(bytes.data(), bytes.size()))));
}

}  // namespace

std::string_view bytes_of(PageFile file) {
  const Form& form = form_of(file);
  return {reinterpret_cast<const char*>(form.begin), static_cast<size_t>(form.end - form.begin)};
}

void send(http::Exchange& exchange, PageFile file) {
  const http::HttpRequest& request = exchange.request();
  if (request.header("accept-encoding").find("gzip") == std::string_view::npos) {
    return exchange.respond(http::error_response(
        {ErrorKind::kUnsupported, "the page is kept compressed, expected Accept-Encoding: gzip"}, {.status = 406}));
  }
  const std::string tag = tag_of(file);
  http::HttpResponse response{.content_type = std::string(form_of(file).content_type)};
  response.headers = {{"etag", tag},
                      {"cache-control", "no-cache"},
                      {"vary", file == PageFile::kHtml ? "accept, accept-encoding" : "accept-encoding"},
                      {"content-security-policy", std::string(kPolicy)},
                      {"x-content-type-options", "nosniff"},
                      {"referrer-policy", "no-referrer"},
                      {"cross-origin-opener-policy", "same-origin"},
                      {"cross-origin-resource-policy", "same-origin"}};
  if (request.header("if-none-match") == tag) {
    response.status = 304;
    return exchange.respond(std::move(response));
  }
  response.headers.emplace_back("content-encoding", "gzip");
  response.body = bytes_of(file);
  exchange.respond(std::move(response));
}

}  // namespace candor::serve::page
