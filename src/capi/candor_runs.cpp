// candor.h: requests, runs, vectors, scores and conversations.

#include <candor/candor.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "candor/verify.h"
#include "capi/figures.h"
#include "capi/guard.h"
#include "capi/run.h"
#include "capi/session.h"
#include "capi/settings.h"

using namespace candor;
using namespace candor::capi;

namespace {

// take: the floats of what the engine made of these tokens, for a request that is set but for its prompt.
template <class Take>
candor_status give_read(candor_engine handle, const int32_t* tokens, size_t size, Request request, candor_data* floats,
                        candor_error* error, const Take& take) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(tokens);
    CANDOR_NEEDS(floats);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    request.prompt = TokenPrompt(tokens, tokens + size);
    CANDOR_ASSIGN(Completion made, engine->generate(request));
    return give(take(made), floats);
  });
}

candor_status give_rows(candor_engine handle, const int32_t* tokens, size_t size, PromptRows rows, candor_data* floats,
                        candor_error* error) {
  Request request;
  request.rows = rows;
  return give_read(handle, tokens, size, std::move(request), floats, error,
                   [](Completion& made) { return std::move(made.prompt_rows); });
}

}  // namespace

candor_status candor_request_new(candor_request* request, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(request);
    *request = add_object(std::make_shared<RequestObject>());
    return {};
  });
}

candor_status candor_prompt_text(candor_request handle, const char* text, size_t size, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (size > 0) CANDOR_NEEDS(text);
    CANDOR_ASSIGN(const auto request, find<RequestObject>(handle, "request"));
    const std::lock_guard lock(request->mutex);
    request->text.text.assign(size > 0 ? text : "", size);
    request->kind = RequestObject::Kind::kText;
    return {};
  });
}

candor_status candor_prompt_tokens(candor_request handle, const int32_t* tokens, size_t size, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (size > 0) CANDOR_NEEDS(tokens);
    CANDOR_ASSIGN(const auto request, find<RequestObject>(handle, "request"));
    const std::lock_guard lock(request->mutex);
    request->tokens.assign(tokens, tokens + size);
    request->kind = RequestObject::Kind::kTokens;
    return {};
  });
}

candor_status candor_prompt_messages(candor_request handle, const char* messages, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(messages);
    CANDOR_ASSIGN(const auto request, find<RequestObject>(handle, "request"));
    CANDOR_ASSIGN(std::vector<Message> parsed, parse_messages(messages));
    const std::lock_guard lock(request->mutex);
    request->chat.messages = std::move(parsed);
    request->kind = RequestObject::Kind::kMessages;
    return {};
  });
}

candor_status candor_constrain(candor_request handle, const char* kind, const char* source, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(kind);
    CANDOR_ASSIGN(const auto request, find<RequestObject>(handle, "request"));
    CANDOR_ASSIGN(const std::optional<GrammarKind> grammar, parse_grammar_kind(kind));
    const std::lock_guard lock(request->mutex);
    request->request.constraint.reset();
    if (grammar)
      request->request.constraint = ConstraintSpec{.kind = *grammar, .source = source == nullptr ? "" : source};
    return {};
  });
}

candor_status candor_on_logits(candor_request handle, int (*hook)(void* user, const candor_row* row), void* user,
                               void (*release)(void* user), candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(hook);
    CANDOR_ASSIGN(const auto request, find<RequestObject>(handle, "request"));
    const std::shared_ptr<void> owned(user, [release](void* given) {
      if (release != nullptr) release(given);
    });
    const std::lock_guard lock(request->mutex);
    request->request.on_logits = [hook, owned](const LogitsRow& row) {
      const candor_row given{.size = sizeof(candor_row),
                             .text = row.text.data(),
                             .n_text = row.text.size(),
                             .n_output = row.n_output,
                             .logits = row.logits.data(),
                             .n_logits = row.logits.size(),
                             .choice = row.choice};
      return hook(owned.get(), &given) == 0;
    };
    return {};
  });
}

candor_status candor_start(candor_engine handle, candor_request wanted, candor_run* run, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(run);
    *run = 0;
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    CANDOR_ASSIGN(const auto draft, find<RequestObject>(wanted, "request"));
    std::unique_lock lock(draft->mutex);
    CANDOR_ASSIGN(const Request request, draft->build());
    lock.unlock();
    CANDOR_ASSIGN(auto started, Run::start(engine, request));
    *run = add_object(std::move(started));
    return {};
  });
}

candor_status candor_next(candor_run handle, candor_event* event, int64_t timeout_ms, candor_error* error) {
  candor_status status = CANDOR_OK;
  const candor_status done = guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(event);
    if (event->size < sizeof(size_t) || event->size > size_t{1} << 16) {
      return fail(ErrorKind::kInvalidInput, "event: set its size to sizeof(candor_event)", "size");
    }
    CANDOR_ASSIGN(const auto run, find<Run>(handle, "run"));
    std::optional<Error> ended;
    status = run->next(*event, timeout_ms, ended);
    if (ended) return *ended;
    return {};
  });
  return done == CANDOR_OK ? status : done;
}

candor_status candor_run_fd(candor_run handle, int* fd, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(fd);
    *fd = -1;
    CANDOR_ASSIGN(const auto run, find<Run>(handle, "run"));
    CANDOR_ASSIGN(*fd, run->fd());
    return {};
  });
}

candor_status candor_cancel(candor_run handle, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_ASSIGN(const auto run, find<Run>(handle, "run"));
    run->cancel();
    return {};
  });
}

candor_status candor_summary(candor_run handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto run, find<Run>(handle, "run"));
    CANDOR_ASSIGN(const RequestSummary summary, run->summary());
    return give(summary_json(summary), json);
  });
}

candor_status candor_explanation(candor_run handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto run, find<Run>(handle, "run"));
    CANDOR_ASSIGN(const TokenEvent event, run->explained());
    const auto engine = run->engine();
    if (engine == nullptr) return fail(ErrorKind::kNotFound, "the engine is closed");
    return give(explanation_text(*engine, event), json);
  });
}

candor_status candor_receipt(candor_run handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto run, find<Run>(handle, "run"));
    CANDOR_ASSIGN(const RequestSummary summary, run->summary());
    if (summary.receipt == nullptr)
      return fail(ErrorKind::kInvalidInput, "the run has no receipt: set the request's receipt to true", "receipt");
    return give(to_json(*summary.receipt), json);
  });
}

candor_status candor_verify(candor_engine handle, const char* receipt, size_t size, candor_data* json,
                            candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(receipt);
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    CANDOR_ASSIGN(const Receipt parsed, parse_receipt({receipt, size}));
    CANDOR_ASSIGN(const ReceiptVerdict verdict, verify(*engine, parsed));
    return give(to_json(verdict, *engine), json);
  });
}

candor_status candor_embed(candor_engine handle, const char* text, size_t size, const char* pooling,
                           candor_data* floats, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(text);
    CANDOR_NEEDS(pooling);
    CANDOR_NEEDS(floats);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    Request request;
    request.prompt = TextPrompt{std::string(text, size)};
    const std::string_view how = pooling;
    if (how != "mean" && how != "last" && how != "cls" && how != "model")
      return fail(ErrorKind::kInvalidInput, "pooling: expected model, mean, last or cls", "pooling");
    request.pooling = how == "mean"   ? Pooling::kMean
                      : how == "last" ? Pooling::kLast
                      : how == "cls"  ? Pooling::kFirst
                                      : Pooling::kModel;
    CANDOR_ASSIGN(Completion made, engine->generate(request));
    return give(std::move(made.embedding), floats);
  });
}

candor_status candor_score(candor_engine handle, const int32_t* tokens, size_t size, candor_data* floats,
                           candor_error* error) {
  Request request;
  request.sampling.prompt_logprobs = 0;
  request.sampling.max_tokens = 0;
  return give_read(handle, tokens, size, std::move(request), floats, error, [](const Completion& made) {
    std::vector<float> logprobs;
    for (const PromptLogprob& one : made.prompt_logprobs) logprobs.push_back(one.logprob.logprob);
    return logprobs;
  });
}

candor_status candor_score_from(candor_engine handle, const int32_t* tokens, size_t size, size_t first,
                                candor_data* floats, candor_error* error) {
  Request request;
  request.sampling.prompt_logprobs = 1;
  request.sampling.max_tokens = 0;
  // A number that no prompt reaches is refused with what was expected.
  request.first_scored = static_cast<int32_t>(std::min<size_t>(first, std::numeric_limits<int32_t>::max()));
  return give_read(handle, tokens, size, std::move(request), floats, error, [](const Completion& made) {
    std::vector<float> logprobs;
    for (const PromptLogprob& one : made.prompt_logprobs) {
      logprobs.push_back(one.logprob.logprob);
      logprobs.push_back(one.top.front().logprob);
    }
    return logprobs;
  });
}

candor_status candor_logits(candor_engine engine, const int32_t* tokens, size_t size, candor_data* floats,
                            candor_error* error) {
  return give_rows(engine, tokens, size, PromptRows::kLogits, floats, error);
}

candor_status candor_hidden(candor_engine engine, const int32_t* tokens, size_t size, candor_data* floats,
                            candor_error* error) {
  return give_rows(engine, tokens, size, PromptRows::kHidden, floats, error);
}

candor_status candor_session_new(candor_engine handle, candor_session* session, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(session);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    *session = add_object(std::make_shared<Session>(engine, std::vector<Message>()));
    return {};
  });
}

candor_status candor_session_say(candor_session handle, const char* role, const char* text, size_t size,
                                 candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(role);
    if (size > 0) CANDOR_NEEDS(text);
    CANDOR_ASSIGN(const auto session, find<Session>(handle, "session"));
    session->say(role, std::string(size > 0 ? text : "", size));
    return {};
  });
}

candor_status candor_session_branch(candor_session handle, candor_session* branch, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(branch);
    CANDOR_ASSIGN(const auto session, find<Session>(handle, "session"));
    *branch = add_object(session->branch());
    return {};
  });
}

candor_status candor_session_start(candor_session handle, candor_request wanted, candor_run* run, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(run);
    *run = 0;
    CANDOR_ASSIGN(const auto session, find<Session>(handle, "session"));
    CANDOR_ASSIGN(const auto draft, find<RequestObject>(wanted, "request"));
    const auto engine = session->engine();
    if (engine == nullptr) return fail(ErrorKind::kNotFound, "the engine is closed");
    std::unique_lock lock(draft->mutex);
    const Request request = draft->build(session->messages());
    lock.unlock();
    const auto keep = [session](std::string text) { session->say("assistant", std::move(text)); };
    CANDOR_ASSIGN(auto started, Run::start(engine, request, keep));
    *run = add_object(std::move(started));
    return {};
  });
}

candor_status candor_session_messages(candor_session handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto session, find<Session>(handle, "session"));
    return give(messages_json(session->messages()), json);
  });
}
