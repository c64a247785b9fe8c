#pragma once
// The files of the web page, built by web/build.mjs, compressed and linked into the program. Any thread.

#include <cstdint>
#include <string_view>

#include "serve/http/exchange.h"

namespace candor::serve::page {

// The last two are loaded when the first formula, or the first PDF, is shown.
enum class PageFile : uint8_t { kHtml, kScript, kStyle, kMath, kPdf };

// gzip of the file.
std::string_view bytes_of(PageFile file);
// With what a browser may do with it. One that has it already (ETag) gets 304, one that takes no gzip 406.
void send(http::Exchange& exchange, PageFile file);

}  // namespace candor::serve::page
