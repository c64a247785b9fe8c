#pragma once
// A receipt's check at work: the request that computes its answers again, and what their events differ in from the
// receipt. verify() runs one and waits; the server runs it like any other request. One thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "candor/engine.h"
#include "candor/receipt.h"
#include "candor/verify.h"

namespace candor::receipt {

class Verification {
 public:
  // Errors and images: as verify() has them.
  static Result<Verification> prepare(const Engine& engine, Receipt receipt, std::span<const std::string> images = {});

  const Request& request() const { return request_; }
  void on_event(const TokenEvent& event);
  // Nothing that is still to come can change the verdict: the request may be cancelled.
  bool is_decided() const;
  const ReceiptVerdict& verdict() const { return verdict_; }

 private:
  struct Answer {
    std::size_t n_tokens = 0;
    std::string text{};
    bool is_over = false;
  };

  Verification(Receipt receipt, Request request);
  void follow(const TokenEvent& event, const ReceiptAnswer& claimed, Answer& answer);
  void take_token(const TokenEvent& event, const ReceiptAnswer& claimed, Answer& answer);
  void finish(const TokenEvent& event, const ReceiptAnswer& claimed, const Answer& answer);
  void finish_broken_off(const TokenEvent& event, const ReceiptAnswer& claimed, Answer& answer);
  void differ(const char* field, const TokenEvent& event, const ReceiptAnswer& claimed, std::size_t position);

  Receipt receipt_;
  Request request_;
  std::vector<Answer> answers_;
  ReceiptVerdict verdict_;
};

}  // namespace candor::receipt
