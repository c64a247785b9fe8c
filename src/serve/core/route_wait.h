#pragma once
// A request that waits until its model is loaded. If it asks for a stream, the stream says at intervals that the model
// is being loaded. The wait ends when the model is loaded or cannot be, the client leaves, or the server ends.

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "serve/core/api.h"
#include "serve/core/early_stream.h"
#include "serve/core/job.h"
#include "serve/core/models.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"

namespace candor::serve {

// What a body says of the model that it is for, before any interface reads it; of a GET what its query says.
struct AskedModel {
  std::string name{};  // "": none is named
  std::string reply_number{};  // that the reply will have
  bool is_stream = false;
};
// Of a route that has a model; without the reply's number. An error where the body is no JSON object.
Result<AskedModel> asked_model(const Route& route, const http::HttpRequest& request);

class RouteWait final : public Work, public ModelWaiter {
 public:
  using Answer = std::function<void(const ModelLease& lease)>;

  // REQUIRES: where the route streams, the exchange's state is its PlaceTicket.
  // answer: called once, on the thread that loads, unless the wait ends otherwise. headers: of a stream.
  RouteWait(std::shared_ptr<http::Exchange> exchange, const LoadingForm& form, AskedModel asked, http::Headers headers,
            Answer answer)
      : exchange_(std::move(exchange)),
        form_(form),
        asked_(std::move(asked)),
        headers_(std::move(headers)),
        answer_(std::move(answer)),
        last_event_(std::chrono::steady_clock::now()) {}

  void on_model(Result<ModelLease> lease) override;
  void cancel() override;
  void abort(const Error& error) override;
  void tick(std::chrono::milliseconds quiet) override;
  // False where it was over already. The first who asks ends it, and answers.
  bool end();

 private:
  // The ticket carries on what was said. REQUIRES: mutex_ is held.
  void open();

  const std::shared_ptr<http::Exchange> exchange_;
  const LoadingForm form_;
  const AskedModel asked_;
  const http::Headers headers_;
  const Answer answer_;

  // Guarded by mutex_.
  std::mutex mutex_;
  bool is_over_ = false;
  std::shared_ptr<EarlyStream> early_{};  // nullptr: nothing was said yet
  std::chrono::steady_clock::time_point last_event_;
};

}  // namespace candor::serve
