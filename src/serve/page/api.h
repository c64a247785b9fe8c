#pragma once
// The routes of the web page at `/`, and of the data that only the page asks for: the sampling parameters, and what the
// engine and the machine do now. The page's own files are served without a key; they hold nothing about the server.

#include "serve/core/api.h"

namespace candor::serve::page {

extern const Api kApi;

}  // namespace candor::serve::page
