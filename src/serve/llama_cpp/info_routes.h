#pragma once
// The routes that describe the server in llama.cpp's format (/props, /slots, /lora-adapters). Any thread.

#include "serve/core/api.h"
#include "serve/http/exchange.h"

namespace candor::serve::llama_cpp {

class InfoRoutes {
 public:
  explicit InfoRoutes(const Core& core) : core_(core) {}

  void props(http::Exchange& exchange) const;
  // There are no fixed slots: one is shown for each answer in work, and a free one where another would be admitted.
  // ?fail_on_no_slot=1: 503 where none is free.
  void slots(http::Exchange& exchange) const;
  // save, restore, erase: refused.
  void slot_action(http::Exchange& exchange) const;
  // Those that are loaded, and the scales that hold for requests that say nothing; and new ones.
  void lora_adapters(http::Exchange& exchange) const;
  void set_lora_adapters(http::Exchange& exchange) const;

 private:
  const Core& core_;
};

}  // namespace candor::serve::llama_cpp
