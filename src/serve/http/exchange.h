#pragma once
// One HTTP request and its reply, shared by the network thread, which moves the bytes, and the handler, which makes the
// reply. A handler either responds once, or opens a stream, writes to it and finishes it. Every method may be called
// from any thread.
//
// Reply bytes are buffered here until the socket takes them. A client that lets more than `max_waiting_bytes` pile up
// is cut off (more than 64 KiB while the server holds more bytes in flight than its limit). Buffered bytes count as
// bytes in flight.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "serve/http/fair_budget.h"
#include "serve/http/message.h"

namespace candor::http {

class Exchange {
 public:
  // wake: called from any thread whenever there is something to take(). held: of its body.
  Exchange(HttpRequest request, size_t max_waiting_bytes, std::function<void()> wake, FairBudget::Share held = {})
      : request_(std::move(request)),
        max_waiting_bytes_(max_waiting_bytes),
        wake_(std::move(wake)),
        body_bytes_(held.amount()),
        held_(std::move(held)) {}

  const HttpRequest& request() const { return request_; }
  // What the handler keeps for this request.
  std::shared_ptr<void> state;
  // REQUIRES: nobody reads request().body at this time, or later.
  void drop_body();

  void respond(HttpResponse response);
  // The status and headers of a reply whose body follows by write().
  void open_stream(HttpResponse head);
  // The same, of a reply that is not yet known: respond() then ends the stream with what `last_words` makes of it, and
  // another head is not sent.
  void open_before_reply(HttpResponse head, std::function<std::string(const HttpResponse&)> last_words);
  // False once the client is gone or cut off: nobody will read more.
  bool write(std::string_view bytes);
  void finish();
  // Ends it, and the connection, without a word.
  void cut() noexcept;
  // For the reply's log line.
  void note(std::string words);
  std::string noted() const;
  // Called once, on the network thread, when the client leaves before the reply is whole; at once if it has left.
  void on_gone(std::function<void()> callback);

  // For the network thread.
  struct Output {
    std::optional<HttpResponse> head;  // its body is the reply's first part, or all of it
    std::string bytes;
    bool is_last = false;
    bool is_stream = false;
  };
  Output take();
  bool is_cut() const;
  void mark_gone();

 private:
  void wake() const { wake_(); }
  // REQUIRES: mutex_ is held.
  void count_held();

  // Constant after construction, but for the body, which may be dropped.
  HttpRequest request_;
  const size_t max_waiting_bytes_;
  const std::function<void()> wake_;
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  int64_t body_bytes_;
  int64_t taken_bytes_ = 0;  // by the network thread, which sends them
  FairBudget::Share held_;
  Output waiting_;
  bool has_head_ = false;
  bool is_finished_ = false;
  bool is_gone_ = false;
  bool is_cut_ = false;
  std::string note_;
  std::function<std::string(const HttpResponse&)> last_words_;  // empty: not opened before the reply
  std::function<void()> on_gone_;
};

}  // namespace candor::http
