#pragma once
// Makes a request's receipt (candor/receipt.h): what is asked for on the caller's thread, each event on the engine
// thread.

#include <span>

#include "base/error.h"
#include "candor/event.h"
#include "candor/request.h"
#include "engine/request/active_request.h"
#include "engine/request/request_check.h"

namespace candor::engine {

// Everything but the answers, where the request asks for a receipt. prompt: with what the context has no room for. Of a
// prompt with images the tower's fingerprint is taken, which reads parts of its weights the first time.
// REQUIRES: the request's rules are made and its adapters chosen.
Result<void> begin_receipt(const Request& request, const ReadPrompt& prompt, const RequestLimits& limits,
                           ActiveRequest& active);
// What the event adds to its answer; an error ends the receipt. Logprobs that only the receipt wants leave the event.
// REQUIRES: the request has a receipt.
void note_event(ActiveRequest& request, TokenEvent& event);

}  // namespace candor::engine
