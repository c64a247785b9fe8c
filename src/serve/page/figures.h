#pragma once
// What the page shows of the server, as JSON. Any thread.

#include "serve/core/api.h"

namespace candor::serve::page {

// The numbers of sampling with their ranges, presets and stages, and the model that is served.
void send_parameters(const Core& core, http::Exchange& exchange);
// The engine and the machine now. ?steps=N: with the steps behind the first N, as far as they are kept.
void send_live(const Core& core, http::Exchange& exchange);

}  // namespace candor::serve::page
