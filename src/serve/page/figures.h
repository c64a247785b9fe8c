#pragma once
// The data that the web page shows, as JSON: sampling parameters, the engine, the machine, the newest steps. Any
// thread.

#include "serve/core/api.h"
#include "serve/http/exchange.h"

namespace candor::serve::page {

// The numbers of sampling with their ranges, presets and stages, and the model that is served.
void send_parameters(const Core& core, http::Exchange& exchange);
// The engine and the machine now; of several models, those of the first that is loaded. ?steps=N: with the steps behind
// the first N, as far as they are kept. It neither loads a model nor keeps one.
void send_live(const ServerCore& server, http::Exchange& exchange);

}  // namespace candor::serve::page
