// candor.h: the library, handles, options, engines, text and tokens.

#include <candor/candor.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "candor/version.h"
#include "capi/figures.h"
#include "capi/guard.h"
#include "capi/settings.h"

using namespace candor;
using namespace candor::capi;

namespace {

// "" for NULL.
std::string_view text_or_nothing(const char* text, size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

template <class T>
const typename T::value_type* contents(candor_data handle, size_t* size) {
  if (size != nullptr) *size = 0;
  const auto data = std::dynamic_pointer_cast<Data<T>>(find_object(handle));
  if (data == nullptr) return nullptr;
  if (size != nullptr) *size = data->value.size();
  return data->value.data();
}

}  // namespace

const char* candor_version(void) {
  return kVersion;
}
int candor_abi(void) {
  return CANDOR_ABI;
}
int candor_numerics(void) {
  return kNumericsVersion;
}

candor_status candor_close(candor_handle handle) {
  return guarded(nullptr, [&]() -> Result<void> {
    const auto object = remove_object(handle);
    if (object == nullptr) return fail(ErrorKind::kNotFound, "the handle is closed, or was never one");
    object->close();
    return {};
  });
}

candor_status candor_error_kind(candor_error error) {
  const auto object = std::dynamic_pointer_cast<ErrorObject>(find_object(error));
  return object == nullptr ? CANDOR_NOT_FOUND : status_of(object->error.kind);
}
const char* candor_error_message(candor_error error) {
  const auto object = std::dynamic_pointer_cast<ErrorObject>(find_object(error));
  return object == nullptr ? "" : object->error.message.c_str();
}
const char* candor_error_field(candor_error error) {
  const auto object = std::dynamic_pointer_cast<ErrorObject>(find_object(error));
  return object == nullptr ? "" : object->error.field.c_str();
}

const char* candor_text(candor_data data, size_t* size) {
  return contents<std::string>(data, size);
}
const int32_t* candor_tokens(candor_data data, size_t* size) {
  return contents<std::vector<int32_t>>(data, size);
}
const float* candor_floats(candor_data data, size_t* size) {
  return contents<std::vector<float>>(data, size);
}

candor_status candor_options_new(candor_options* options, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(options);
    *options = add_object(std::make_shared<OptionsObject>());
    return {};
  });
}

candor_status candor_set(candor_handle handle, const char* name, const char* value, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(name);
    CANDOR_NEEDS(value);
    const auto object = find_object(handle);
    if (const auto request = std::dynamic_pointer_cast<RequestObject>(object)) {
      const std::lock_guard lock(request->mutex);
      return set_request_option(*request, name, value);
    }
    CANDOR_ASSIGN(const auto options, find<OptionsObject>(handle, "options and no request"));
    const std::lock_guard lock(options->mutex);
    return set_engine_option(options->options, name, value);
  });
}

candor_status candor_open(const char* model, candor_options options, candor_engine* engine, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(model);
    CANDOR_NEEDS(engine);
    *engine = 0;
    EngineOptions chosen;
    if (options != 0) {
      CANDOR_ASSIGN(const auto object, find<OptionsObject>(options, "options"));
      const std::lock_guard lock(object->mutex);
      chosen = object->options;
    }
    chosen.model_path = model;
    CANDOR_ASSIGN(auto opened, Engine::open(chosen));
    *engine = add_object(std::make_shared<EngineObject>(std::move(opened)));
    return {};
  });
}

candor_status candor_info(candor_engine handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    return give(info_json(engine->info()), json);
  });
}

candor_status candor_metrics(candor_engine handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    return give(metrics_json(engine->stats(), engine->metrics(), engine->device()), json);
  });
}

candor_status candor_load_adapter(candor_engine handle, const char* name, const char* path, double scale,
                                  candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(name);
    CANDOR_NEEDS(path);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    CANDOR_TRY(engine->load_adapter({name, path, scale}));
    return {};
  });
}

candor_status candor_drop_adapter(candor_engine handle, const char* name, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(name);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    return engine->drop_adapter(name);
  });
}

candor_status candor_adapters(candor_engine handle, candor_data* json, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(json);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    return give(adapters_json(engine->adapters()), json);
  });
}

candor_status candor_tokenize(candor_engine handle, const char* text, size_t size, int add_special, int parse_special,
                              candor_data* tokens, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (size > 0) CANDOR_NEEDS(text);
    CANDOR_NEEDS(tokens);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    TextPrompt prompt{std::string(text_or_nothing(text, size)), add_special != 0, parse_special != 0};
    CANDOR_ASSIGN(std::vector<TokenId> ids, engine->tokenize(std::move(prompt)));
    return give(std::move(ids), tokens);
  });
}

candor_status candor_detokenize(candor_engine handle, const int32_t* tokens, size_t size, candor_data* text,
                                candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    if (size > 0) CANDOR_NEEDS(tokens);
    CANDOR_NEEDS(text);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    CANDOR_ASSIGN(std::string joined, engine->detokenize({tokens, size}));
    return give(std::move(joined), text);
  });
}

candor_status candor_token_bytes(candor_engine handle, int32_t token, candor_data* bytes, candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(bytes);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    if (token < 0 || token >= engine->info().n_vocab) {
      return fail(ErrorKind::kInvalidInput, "token: the vocabulary has no such id", "token");
    }
    return give(std::string(engine->token_bytes(token)), bytes);
  });
}

candor_status candor_apply_template(candor_engine handle, const char* messages, candor_data* text,
                                    candor_error* error) {
  return guarded(error, [&]() -> Result<void> {
    CANDOR_NEEDS(messages);
    CANDOR_NEEDS(text);
    CANDOR_ASSIGN(const auto engine, find_engine(handle));
    ChatPrompt chat;
    CANDOR_ASSIGN(chat.messages, parse_messages(messages));
    CANDOR_ASSIGN(std::string rendered, engine->apply_template(chat));
    return give(std::move(rendered), text);
  });
}
