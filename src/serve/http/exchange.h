#pragma once
// One request and its reply, shared by the network thread that moves the bytes and whoever makes them. Every method may
// be called from any thread. A handler either responds once, or opens a stream, writes to it and finishes it.
// Bytes wait here until the socket takes them: a reader that lets more than `max_waiting_bytes` pile up is cut off.

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace candor::http {

class Exchange {
 public:
  // wake: called from any thread whenever there is something to take().
  Exchange(HttpRequest request, size_t max_waiting_bytes, std::function<void()> wake)
      : request_(std::move(request)), max_waiting_bytes_(max_waiting_bytes), wake_(std::move(wake)) {}

  const HttpRequest& request() const { return request_; }

  void respond(HttpResponse response);
  // The status and headers of a reply whose body follows by write().
  void open_stream(HttpResponse head);
  // False once the client is gone or cut off: nobody will read more.
  bool write(std::string_view bytes);
  void finish();
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

  // Constant after construction.
  const HttpRequest request_;
  const size_t max_waiting_bytes_;
  const std::function<void()> wake_;
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  Output waiting_;
  bool has_head_ = false;
  bool is_finished_ = false;
  bool is_gone_ = false;
  bool is_cut_ = false;
  std::function<void()> on_gone_;
};

}  // namespace candor::http
